// x1 = x1 + A y1 and x2 = x2 + A^T y2. As in PolyBench the sums are kept in memory: every step of the inner loops
// stores, since the compiler must assume that the arrays overlap.

// Each thread walks a row of its own, so a warp's load touches 32 lines.
extern "C" __global__ void mvt_1(int n, float *a, float *x1, float *y1)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int j = 0; j < n; j++)
            x1[i] += a[i * n + j] * y1[j];
}

// Each thread walks a column.
extern "C" __global__ void mvt_2(int n, float *a, float *x2, float *y2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int j = 0; j < n; j++)
            x2[i] += a[j * n + i] * y2[j];
}
