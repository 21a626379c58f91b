// C = alpha A B + beta C, one element per thread. As in PolyBench the sum is kept in C: every step of the inner loop
// loads and stores it, since the compiler must assume that the matrices overlap.
extern "C" __global__ void gemm(int ni, int nj, int nk, float alpha, float beta, float *a, float *b, float *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && j < nj) {
        c[i * nj + j] *= beta;
        for (int k = 0; k < nk; k++)
            c[i * nj + j] += alpha * a[i * nk + k] * b[k * nj + j];
    }
}
