// Matrix transpose without scratchpad: a warp reads down a column, one line per lane, and writes along a row.
#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose_columns(const float *input, float *output, int width, int height)
{
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;

    if (x < height)
        for (int row = 0; row < TILE; row += ROWS)
            if (y + row < width)
                output[(y + row) * height + x] = input[x * width + y + row];
}
