// The two products of the biconjugate gradient method, s = A^T r and q = A p. As in PolyBench the sums are kept in
// memory: every step of the inner loops stores, since the compiler must assume that the arrays overlap.

// s = A^T r: each thread walks a column.
extern "C" __global__ void bicg_1(int rows, int columns, float *a, float *r, float *s)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < columns) {
        s[j] = 0.0f;
        for (int i = 0; i < rows; i++)
            s[j] += r[i] * a[i * columns + j];
    }
}

// q = A p: each thread walks a row of its own, so a warp's load touches 32 lines. Of the columns, which are the pitch of
// A, it takes the first `steps`.
extern "C" __global__ void bicg_2(int rows, int columns, int steps, float *a, float *p, float *q)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows) {
        q[i] = 0.0f;
        for (int j = 0; j < steps; j++)
            q[i] += a[i * columns + j] * p[j];
    }
}
