// Sparse matrix times dense vector in jagged diagonal storage (JDS), after Parboil's spmv: rows are sorted by length,
// so that the threads of a warp have rows of like length; the k-th entries of all rows lie side by side. Start of each
// diagonal and number of diagonals per warp stand in constant memory.
#define MAX_DIAGONALS 5000
#define MAX_WARPS 5000

__constant__ int diagonal_start[MAX_DIAGONALS];
__constant__ int warp_diagonals[MAX_WARPS];

extern "C" __global__ void spmv_jds(float *result, const float *values, const int *columns, const int *permutation,
                                    const float *vector, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row < rows) {
        float sum = 0.0f;
        int bound = warp_diagonals[row >> 5];
        for (int k = 0; k < bound; k++) {
            int entry = diagonal_start[k] + row;
            sum += values[entry] * vector[columns[entry]];
        }
        result[permutation[row]] = sum;
    }
}
