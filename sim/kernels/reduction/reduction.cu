// Sum of integers: a grid-stride loop of two elements per step, then a tree in the scratchpad whose last five steps run
// in one warp. A first launch leaves one partial sum per CTA, a second launch of one CTA adds these.
extern "C" __global__ void reduce(const int *input, int *output, unsigned int n)
{
    __shared__ int partial[256];
    unsigned int thread = threadIdx.x;
    unsigned int stride = 2 * blockDim.x * gridDim.x;
    int sum = 0;

    for (unsigned int i = blockIdx.x * blockDim.x * 2 + thread; i < n; i += stride) {
        sum += input[i];
        if (i + blockDim.x < n)
            sum += input[i + blockDim.x];
    }
    partial[thread] = sum;
    __syncthreads();

    for (unsigned int width = blockDim.x / 2; width > 32; width /= 2) {
        if (thread < width)
            partial[thread] = sum = sum + partial[thread + width];
        __syncthreads();
    }
    if (thread < 32) {
        volatile int *warp = partial;
        for (unsigned int width = 32; width > 0; width /= 2) {
            sum += warp[thread + width];
            __syncwarp();
            warp[thread] = sum;
            __syncwarp();
        }
    }
    if (thread == 0)
        output[blockIdx.x] = sum;
}
