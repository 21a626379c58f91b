// C = beta C + alpha A B^T, column-major, with register blocking as in Parboil's sgemm: a CTA of 16 x 8 threads
// computes a tile of 128 x 16; each thread owns one row and keeps its 16 sums in registers. Eight rows of B^T at a time
// are staged in the scratchpad and read by all threads (broadcast).
#define TILE_N 16
#define TILE_K 8
#define TILE_M (TILE_N * TILE_K)

extern "C" __global__ void sgemm_nt(const float *a, int lda, const float *b, int ldb, float *c, int ldc, int k,
                                    float alpha, float beta)
{
    __shared__ float tile[TILE_K][TILE_N];
    int row = blockIdx.x * TILE_M + threadIdx.y * TILE_N + threadIdx.x;
    int column = blockIdx.y * TILE_N;
    float sum[TILE_N];

    for (int n = 0; n < TILE_N; n++)
        sum[n] = 0.0f;
    for (int base = 0; base < k; base += TILE_K) {
        tile[threadIdx.y][threadIdx.x] = b[column + threadIdx.x + (base + threadIdx.y) * ldb];
        __syncthreads();
#pragma unroll
        for (int step = 0; step < TILE_K; step++) {
            float value = a[row + (base + step) * lda];
#pragma unroll
            for (int n = 0; n < TILE_N; n++)
                sum[n] += value * tile[step][n];
        }
        __syncthreads();
    }
    for (int n = 0; n < TILE_N; n++)
        c[row + (column + n) * ldc] = c[row + (column + n) * ldc] * beta + alpha * sum[n];
}
