// C = alpha A B^T + alpha B A^T + beta C, one element per thread. Neighbouring threads walk neighbouring rows of A and
// of B, so two of a warp's four loads touch 32 lines. As in PolyBench the sum is kept in C: every step stores, since
// the compiler must assume that the matrices overlap. Of the depth m, which is the pitch of A and B, the sums take the
// first `steps`.
extern "C" __global__ void syr2k(int n, int m, int steps, float alpha, float beta, float *a, float *b, float *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < n && j < n) {
        c[i * n + j] *= beta;
        for (int k = 0; k < steps; k++)
            c[i * n + j] += alpha * a[i * m + k] * b[j * m + k] + alpha * b[i * m + k] * a[j * m + k];
    }
}
