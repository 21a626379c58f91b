// x1 = x1 + A y1 and x2 = x2 + A^T y2. As in PolyBench the sums are kept in memory: every step of the inner loops
// stores, since the compiler must assume that the arrays overlap.

// Each thread walks a row of its own, so a warp's load touches 32 lines.
static __device__ void walk_rows(int n, int steps, float *a, float *x1, float *y1)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int j = 0; j < steps; j++)
            x1[i] += a[i * n + j] * y1[j];
}

// Each thread walks a column.
static __device__ void walk_columns(int n, int steps, float *a, float *x2, float *y2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int j = 0; j < steps; j++)
            x2[i] += a[j * n + i] * y2[j];
}

extern "C" __global__ void mvt_1(int n, float *a, float *x1, float *y1)
{
    walk_rows(n, n, a, x1, y1);
}

extern "C" __global__ void mvt_2(int n, float *a, float *x2, float *y2)
{
    walk_columns(n, n, a, x2, y2);
}

// The first steps only: a sample of a matrix that is larger. Entries of their own, because a further parameter is a
// further instruction, and mvt_1 and mvt_2 are what another simulator has run.
extern "C" __global__ void mvt_1_part(int n, int steps, float *a, float *x1, float *y1)
{
    walk_rows(n, steps, a, x1, y1);
}

extern "C" __global__ void mvt_2_part(int n, int steps, float *a, float *x2, float *y2)
{
    walk_columns(n, steps, a, x2, y2);
}
