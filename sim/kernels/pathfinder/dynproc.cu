// The cheapest way through a grid from top to bottom, one step down and at most one to the side at a time, after Rodinia's
// pathfinder: a launch goes down some rows. A CTA keeps its part of a row in the scratchpad, with a halo that is as wide
// as there are rows to go, because each row's outermost results lack a neighbour.
#define BLOCK 256

extern "C" __global__ void dynproc_kernel(int iterations, const int *wall, const int *source, int *results, int columns,
                                          int first_row, int halo)
{
    __shared__ int above[BLOCK];
    __shared__ int result[BLOCK];
    int thread = threadIdx.x;
    int begin = (BLOCK - 2 * halo) * blockIdx.x - halo;  // the column of the first thread, which may lie outside
    int column = begin + thread;
    int left = max(thread - 1, max(-begin, 0));
    int right = min(thread + 1, min(columns - 1 - begin, BLOCK - 1));
    bool inside = column >= 0 && column < columns;

    if (inside)
        above[thread] = source[column];
    __syncthreads();

    bool computed = false;
    for (int i = 0; i < iterations; i++) {
        computed = inside && thread > i && thread < BLOCK - 1 - i;
        if (computed) {
            int least = min(min(above[left], above[thread]), above[right]);
            result[thread] = least + wall[columns * (first_row + i) + column];
        }
        __syncthreads();
        if (i == iterations - 1)
            break;
        if (computed)
            above[thread] = result[thread];
        __syncthreads();
    }
    if (computed)
        results[column] = result[thread];
}
