// Thermal simulation on a grid, after Rodinia's hotspot: a CTA of 16 x 16 threads loads a tile with a border, advances
// it `steps` time steps in the scratchpad (the valid part shrinks by one cell per step: the pyramid) and writes the
// rest.
#define BLOCK 16

extern "C" __global__ void calculate_temp(int steps, const float *power, const float *source, float *target,
                                          int columns, int rows, int border_columns, int border_rows,
                                          float capacitance, float rx, float ry, float rz, float time_step)
{
    __shared__ float current[BLOCK][BLOCK];
    __shared__ float tile_power[BLOCK][BLOCK];
    __shared__ float next[BLOCK][BLOCK];

    const float ambient = 80.0f;
    float step_over_capacitance = time_step / capacitance;
    float rx_inverse = 1 / rx;
    float ry_inverse = 1 / ry;
    float rz_inverse = 1 / rz;
    int tx = threadIdx.x;
    int ty = threadIdx.y;

    // The tile without its border is what the CTA computes for good.
    int tile_rows = BLOCK - steps * 2;
    int tile_columns = BLOCK - steps * 2;
    int block_y = tile_rows * blockIdx.y - border_rows;
    int block_x = tile_columns * blockIdx.x - border_columns;
    int block_y_end = block_y + BLOCK - 1;
    int block_x_end = block_x + BLOCK - 1;
    int y = block_y + ty;
    int x = block_x + tx;
    int index = columns * y + x;
    bool inside = y >= 0 && y <= rows - 1 && x >= 0 && x <= columns - 1;

    if (inside) {
        current[ty][tx] = source[index];
        tile_power[ty][tx] = power[index];
    }
    __syncthreads();

    // The part of the tile that lies in the grid, and the neighbours clamped to it.
    int valid_y_first = block_y < 0 ? -block_y : 0;
    int valid_y_last = block_y_end > rows - 1 ? BLOCK - 1 - (block_y_end - rows + 1) : BLOCK - 1;
    int valid_x_first = block_x < 0 ? -block_x : 0;
    int valid_x_last = block_x_end > columns - 1 ? BLOCK - 1 - (block_x_end - columns + 1) : BLOCK - 1;
    int north = ty - 1 < valid_y_first ? valid_y_first : ty - 1;
    int south = ty + 1 > valid_y_last ? valid_y_last : ty + 1;
    int west = tx - 1 < valid_x_first ? valid_x_first : tx - 1;
    int east = tx + 1 > valid_x_last ? valid_x_last : tx + 1;

    bool computed = false;
    for (int step = 0; step < steps; step++) {
        computed = false;
        if (tx >= step + 1 && tx <= BLOCK - step - 2 && ty >= step + 1 && ty <= BLOCK - step - 2 &&
            tx >= valid_x_first && tx <= valid_x_last && ty >= valid_y_first && ty <= valid_y_last) {
            computed = true;
            float centre = current[ty][tx];
            float flow = tile_power[ty][tx] + (current[south][tx] + current[north][tx] - 2.0f * centre) * ry_inverse +
                         (current[ty][east] + current[ty][west] - 2.0f * centre) * rx_inverse +
                         (ambient - centre) * rz_inverse;
            next[ty][tx] = centre + step_over_capacitance * flow;
        }
        __syncthreads();
        if (step == steps - 1)
            break;
        if (computed)
            current[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    if (computed)
        target[index] = next[ty][tx];
}
