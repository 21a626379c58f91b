// LU decomposition in place and without pivoting, after Rodinia's lud. For each block of 16 x 16 on the diagonal there
// are three launches: the block itself, the blocks beside and below it, and all that remain. L has ones on its diagonal.
#define BLOCK 16

// 16 threads: half a warp. Column i of L by a thread per row, then row i + 1 of U by a thread per column.
extern "C" __global__ void lud_diagonal(float *m, int size, int offset)
{
    __shared__ float block[BLOCK][BLOCK];
    int thread = threadIdx.x;
    float *corner = m + offset * size + offset;

    for (int i = 0; i < BLOCK; i++)
        block[i][thread] = corner[i * size + thread];
    __syncthreads();
    for (int i = 0; i < BLOCK - 1; i++) {
        if (thread > i) {
            for (int j = 0; j < i; j++)
                block[thread][i] -= block[thread][j] * block[j][i];
            block[thread][i] /= block[i][i];
        }
        __syncthreads();
        if (thread > i) {
            for (int j = 0; j < i + 1; j++)
                block[i + 1][thread] -= block[i + 1][j] * block[j][thread];
        }
        __syncthreads();
    }
    for (int i = 1; i < BLOCK; i++)  // row 0 stays as it is
        corner[i * size + thread] = block[i][thread];
}

// 32 threads: one half of the warp computes a block of U beside the diagonal, the other one of L below it.
extern "C" __global__ void lud_perimeter(float *m, int size, int offset)
{
    __shared__ float diagonal[BLOCK][BLOCK];
    __shared__ float beside[BLOCK][BLOCK];
    __shared__ float below[BLOCK][BLOCK];
    bool upper = threadIdx.x < BLOCK;
    int thread = upper ? threadIdx.x : threadIdx.x - BLOCK;
    int away = (blockIdx.x + 1) * BLOCK;
    float *corner = m + offset * size + offset;

    if (upper) {
        for (int i = 0; i < BLOCK / 2; i++)
            diagonal[i][thread] = corner[i * size + thread];
        for (int i = 0; i < BLOCK; i++)
            beside[i][thread] = corner[i * size + away + thread];
    } else {
        for (int i = BLOCK / 2; i < BLOCK; i++)
            diagonal[i][thread] = corner[i * size + thread];
        for (int i = 0; i < BLOCK; i++)
            below[i][thread] = corner[(i + away) * size + thread];
    }
    __syncthreads();
    if (upper) {
        for (int i = 1; i < BLOCK; i++)
            for (int j = 0; j < i; j++)
                beside[i][thread] -= diagonal[i][j] * beside[j][thread];
    } else {
        for (int i = 0; i < BLOCK; i++) {
            for (int j = 0; j < i; j++)
                below[thread][i] -= below[thread][j] * diagonal[j][i];
            below[thread][i] /= diagonal[i][i];
        }
    }
    __syncthreads();
    if (upper) {
        for (int i = 1; i < BLOCK; i++)
            corner[i * size + away + thread] = beside[i][thread];
    } else {
        for (int i = 0; i < BLOCK; i++)
            corner[(i + away) * size + thread] = below[i][thread];
    }
}

// 16 x 16 threads: each block that remains loses the product of the blocks left of it and above it.
extern "C" __global__ void lud_internal(float *m, int size, int offset)
{
    __shared__ float above[BLOCK][BLOCK];
    __shared__ float left[BLOCK][BLOCK];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = offset + (blockIdx.y + 1) * BLOCK + ty;
    int column = offset + (blockIdx.x + 1) * BLOCK + tx;

    above[ty][tx] = m[(offset + ty) * size + column];
    left[ty][tx] = m[row * size + offset + tx];
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < BLOCK; i++)
        sum += left[ty][i] * above[i][tx];
    m[row * size + column] -= sum;
}
