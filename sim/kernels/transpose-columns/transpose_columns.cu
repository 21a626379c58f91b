// Matrix transpose without scratchpad: reads stride through memory, writes are coalesced.
extern "C" __global__ void transpose_columns(const float *input, float *output, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x < height && y < width)
        output[y * height + x] = input[x * width + y];
}
