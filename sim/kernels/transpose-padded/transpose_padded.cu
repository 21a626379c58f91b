// Matrix transpose through a tile in the scratchpad: reads and writes are coalesced, and a column of padding spreads
// each column of the tile over all banks.
#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose_padded(const float *input, float *output, int width, int height)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;

    if (x < width)
        for (int row = 0; row < TILE; row += ROWS)
            if (y + row < height)
                tile[threadIdx.y + row][threadIdx.x] = input[(y + row) * width + x];
    __syncthreads();

    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < height)
        for (int row = 0; row < TILE; row += ROWS)
            if (y + row < width)
                output[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}
