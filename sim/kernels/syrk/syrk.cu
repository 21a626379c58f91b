// C = alpha A A^T + beta C, one element per thread. Neighbouring threads walk neighbouring rows of A, so a warp's
// second load touches 32 lines. As in PolyBench the sum is kept in C: every step stores, since the compiler must assume
// that the matrices overlap.
static __device__ void update(int n, int m, int steps, float alpha, float beta, float *a, float *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < n && j < n) {
        c[i * n + j] *= beta;
        for (int k = 0; k < steps; k++)
            c[i * n + j] += alpha * a[i * m + k] * a[j * m + k];
    }
}

extern "C" __global__ void syrk(int n, int m, float alpha, float beta, float *a, float *c)
{
    update(n, m, m, alpha, beta, a, c);
}

// The first terms of the sums only: a sample of matrices that are larger. An entry of its own, because a further
// parameter is a further instruction, and `syrk` is what another simulator has run.
extern "C" __global__ void syrk_part(int n, int m, int steps, float alpha, float beta, float *a, float *c)
{
    update(n, m, steps, alpha, beta, a, c);
}
