// Prices of European call options in a binomial tree, after the SDK's binomialOptions: a CTA has an option and walks up
// the tree from its leaves, whose values are in global memory. It takes as many of them as it has threads into the
// scratchpad, and 32 steps at a time, each of which leaves one less that is right; so these pieces overlap by 32.
#define MAX_THREADS 256
#define DEPTH 32  // steps of a piece
#define MAX_OPTIONS 1024

struct Option {
    float price, strike, step, up, down;  // up and down: probabilities, discounted over a step
};

__constant__ Option options[MAX_OPTIONS];

// `steps` is a multiple of DEPTH. `values`: `pitch` for each option, more than `steps`.
extern "C" __global__ void binomialOptionsKernel(float *result, float *values, int steps, int pitch)
{
    __shared__ float even[MAX_THREADS + 1];
    __shared__ float odd[MAX_THREADS + 1];
    const int tid = threadIdx.x;
    const int threads = blockDim.x;
    const Option option = options[blockIdx.x];
    values += blockIdx.x * pitch;

    for (int i = tid; i <= steps; i += threads)
        values[i] = fmaxf(option.price * expf(option.step * (2 * i - steps)) - option.strike, 0.0f);

    for (int level = steps; level > 0; level -= DEPTH) {
        for (int begin = 0; begin < level; begin += threads - DEPTH) {
            int last = min(threads - 1, level - begin);

            __syncthreads();
            if (tid <= last)
                even[tid] = values[begin + tid];
            for (int k = last - 1; k >= last - DEPTH; k -= 2) {
                __syncthreads();
                if (tid <= k)
                    odd[tid] = option.up * even[tid + 1] + option.down * even[tid];
                __syncthreads();
                if (tid < k)
                    even[tid] = option.up * odd[tid + 1] + option.down * odd[tid];
            }
            __syncthreads();
            if (tid <= last - DEPTH)
                values[begin + tid] = even[tid];
        }
    }
    if (tid == 0)
        result[blockIdx.x] = even[0];
}
