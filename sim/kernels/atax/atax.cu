// y = A^T (A x) in two launches. As in PolyBench the sums are kept in memory: every step of the inner loops stores,
// since the compiler must assume that the arrays overlap.

// Each thread walks a row of its own, so a warp's load touches 32 lines.
static __device__ void walk_rows(int rows, int columns, int steps, float *a, float *x, float *tmp)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows)
        for (int j = 0; j < steps; j++)
            tmp[i] += a[i * columns + j] * x[j];
}

// tmp = A x.
extern "C" __global__ void atax_1(int rows, int columns, float *a, float *x, float *tmp)
{
    walk_rows(rows, columns, columns, a, x, tmp);
}

// The same for the first columns only: a sample of a matrix that is wider. An entry of its own, because a further
// parameter is a further instruction, and atax_1 is what another simulator has run.
extern "C" __global__ void atax_1_part(int rows, int columns, int steps, float *a, float *x, float *tmp)
{
    walk_rows(rows, columns, steps, a, x, tmp);
}

// y = A^T tmp: each thread walks a column, so a warp's load touches one or two lines.
extern "C" __global__ void atax_2(int rows, int columns, float *a, float *y, float *tmp)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < columns)
        for (int i = 0; i < rows; i++)
            y[j] += a[i * columns + j] * tmp[i];
}
