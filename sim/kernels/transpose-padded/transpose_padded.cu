// Matrix transpose through a tile in the scratchpad: reads and writes are coalesced, and a column of padding keeps the
// column-wise reads of the tile free of bank conflicts.
#define TILE 16

extern "C" __global__ void transpose_padded(const float *input, float *output, int width, int height)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;

    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = input[y * width + x];
    __syncthreads();

    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < height && y < width)
        output[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
