// Solutions of the N queens puzzle, after NQU of GPGPU-Sim's benchmarks. The host places queens in the first rows, in
// every possible way. A thread goes on from one of these, row by row, and backtracks; its stacks are in the scratchpad.
#define THREADS 96
#define DEPTH 10  // rows that are left, at most

// Bits are columns. A start has those that the placed queens attack in the next row: straight, and by their diagonals.
// `rows` are left. A CTA gives the sum of its threads' solutions.
extern "C" __global__ void solve_nqueen(const unsigned int *straight_starts, const unsigned int *left_starts,
                                        const unsigned int *right_starts, int starts, int columns, int rows,
                                        unsigned int *solutions)
{
    __shared__ unsigned int straight[THREADS][DEPTH];
    __shared__ unsigned int left[THREADS][DEPTH];
    __shared__ unsigned int right[THREADS][DEPTH];
    __shared__ unsigned int open[THREADS][DEPTH];  // columns that are still to be tried
    __shared__ unsigned int counts[THREADS];
    int thread = threadIdx.x;
    int start = blockIdx.x * THREADS + thread;
    unsigned int board = (1u << columns) - 1;
    unsigned int count = 0;

    if (start < starts) {
        int row = 0;
        straight[thread][0] = straight_starts[start];
        left[thread][0] = left_starts[start];
        right[thread][0] = right_starts[start];
        open[thread][0] = board & ~(straight[thread][0] | left[thread][0] | right[thread][0]);
        while (row >= 0) {
            unsigned int tried = open[thread][row];
            if (tried == 0) {
                row--;
                continue;
            }
            unsigned int queen = tried & -tried;
            open[thread][row] = tried ^ queen;
            if (row == rows - 1) {
                count++;
                continue;
            }
            unsigned int next_straight = straight[thread][row] | queen;
            unsigned int next_left = (left[thread][row] | queen) << 1;
            unsigned int next_right = (right[thread][row] | queen) >> 1;
            row++;
            straight[thread][row] = next_straight;
            left[thread][row] = next_left;
            right[thread][row] = next_right;
            open[thread][row] = board & ~(next_straight | next_left | next_right);
        }
    }

    counts[thread] = count;
    __syncthreads();
    if (thread < 32)
        counts[thread] += counts[thread + 32] + counts[thread + 64];
    for (int width = 16; width > 0; width /= 2) {
        __syncthreads();
        if (thread < width)
            counts[thread] += counts[thread + width];
    }
    if (thread == 0)
        solutions[blockIdx.x] = counts[0];
}
