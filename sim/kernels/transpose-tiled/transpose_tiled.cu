// Matrix transpose through a tile in the scratchpad: reads and writes are coalesced, but the lanes of a warp that read
// a column of the tile meet in the same banks.
#define TILE 16

extern "C" __global__ void transpose_tiled(const float *input, float *output, int width, int height)
{
    __shared__ float tile[TILE][TILE];
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
