// y = A^T (A x) in two launches. As in PolyBench the sums are kept in memory: every step of the inner loops stores,
// since the compiler must assume that the arrays overlap.

// tmp = A x: each thread walks a row of its own, so a warp's load touches 32 lines.
extern "C" __global__ void atax_1(int rows, int columns, float *a, float *x, float *tmp)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows)
        for (int j = 0; j < columns; j++)
            tmp[i] += a[i * columns + j] * x[j];
}

// y = A^T tmp: each thread walks a column, so a warp's load touches one or two lines.
extern "C" __global__ void atax_2(int rows, int columns, float *a, float *y, float *tmp)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < columns)
        for (int i = 0; i < rows; i++)
            y[j] += a[i * columns + j] * tmp[i];
}
