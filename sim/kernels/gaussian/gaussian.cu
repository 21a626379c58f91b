// Gaussian elimination without pivoting, after Rodinia's gaussian: a pair of launches per column. A thread's x counts
// rows, so that a warp of Fan1 and neighbours in Fan2 walk down columns.

// What the rows below `column` are to lose: a multiplier for each of them.
extern "C" __global__ void Fan1(float *multiplier, const float *matrix, int size, int column)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row >= size - 1 - column)
        return;
    multiplier[size * (row + column + 1) + column] =
        matrix[size * (row + column + 1) + column] / matrix[size * column + column];
}

// Every element below and right of the pivot loses the multiple of the pivot's row; so does the right-hand side.
extern "C" __global__ void Fan2(const float *multiplier, float *matrix, float *right, int size, int column)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= size - 1 - column || y >= size - column)
        return;
    int row = x + column + 1;
    matrix[size * row + y + column] -= multiplier[size * row + column] * matrix[size * column + y + column];
    if (y == 0)
        right[row] -= multiplier[size * row + y + column] * right[column];
}
