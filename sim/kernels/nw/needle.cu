// Needleman-Wunsch alignment, after Rodinia's nw: a CTA of 16 threads, half a warp, fills a block of 16 x 16 scores,
// antidiagonal by antidiagonal, in the scratchpad. Blocks on an antidiagonal of the matrix depend on none of each other: a
// launch per antidiagonal, by the first function down to the longest one and by the second after it.
#define BLOCK 16

// The best of a match of both, and of a gap in either.
__device__ void score(int (*scores)[BLOCK + 1], int (*similarity)[BLOCK], int y, int x, int penalty)
{
    int match = scores[y - 1][x - 1] + similarity[y - 1][x - 1];
    scores[y][x] = max(max(match, scores[y][x - 1] - penalty), scores[y - 1][x] - penalty);
}

// `columns` counts the matrix's, with the one of gaps at its left; as above.
__device__ void fill(const int *similarities, int *matrix, int columns, int penalty, int block_x, int block_y)
{
    __shared__ int scores[BLOCK + 1][BLOCK + 1];
    __shared__ int similarity[BLOCK][BLOCK];
    int tx = threadIdx.x;
    int corner = columns * BLOCK * block_y + BLOCK * block_x;
    int inner = corner + columns + 1 + tx;

    if (tx == 0)
        scores[0][0] = matrix[corner];
    for (int y = 0; y < BLOCK; y++)
        similarity[y][tx] = similarities[inner + columns * y];
    __syncthreads();
    scores[tx + 1][0] = matrix[corner + columns * (tx + 1)];
    __syncthreads();
    scores[0][tx + 1] = matrix[corner + 1 + tx];
    __syncthreads();

    for (int m = 0; m < BLOCK; m++) {
        if (tx <= m)
            score(scores, similarity, m - tx + 1, tx + 1, penalty);
        __syncthreads();
    }
    for (int m = BLOCK - 2; m >= 0; m--) {
        if (tx <= m)
            score(scores, similarity, BLOCK - tx, tx + BLOCK - m, penalty);
        __syncthreads();
    }
    for (int y = 0; y < BLOCK; y++)
        matrix[inner + columns * y] = scores[y + 1][tx + 1];
}

// Antidiagonal i, counted from 1, of the upper left half: it has i blocks.
extern "C" __global__ void needle_cuda_shared_1(const int *similarities, int *matrix, int columns, int penalty, int i,
                                                int block_columns)
{
    fill(similarities, matrix, columns, penalty, blockIdx.x, i - 1 - blockIdx.x);
}

// Of the lower right half, the one that has i blocks.
extern "C" __global__ void needle_cuda_shared_2(const int *similarities, int *matrix, int columns, int penalty, int i,
                                                int block_columns)
{
    fill(similarities, matrix, columns, penalty, blockIdx.x + block_columns - i, block_columns - blockIdx.x - 1);
}
