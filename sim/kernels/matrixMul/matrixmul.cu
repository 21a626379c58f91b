// C = A B for row-major matrices whose sides are multiples of 16, after the SDK's matrixMul: a CTA of 16 x 16 threads
// computes a tile of C from tiles of A and B in the scratchpad.
#define BLOCK 16
#ifndef VALUE
#define VALUE float
#endif

extern "C" __global__ void matrixMul(VALUE *c, const VALUE *a, const VALUE *b, int a_columns, int b_columns)
{
    __shared__ VALUE a_tile[BLOCK][BLOCK];
    __shared__ VALUE b_tile[BLOCK][BLOCK];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = BLOCK * blockIdx.y + ty;
    int column = BLOCK * blockIdx.x + tx;

    VALUE sum = 0;
    for (int first = 0; first < a_columns; first += BLOCK) {
        a_tile[ty][tx] = a[row * a_columns + first + tx];
        b_tile[ty][tx] = b[(first + ty) * b_columns + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BLOCK; k++)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    c[row * b_columns + column] = sum;
}
