// Histogram of bytes into 256 bins, after the SDK's histogram256: every warp of a CTA counts in a sub-histogram of its
// own in the scratchpad, the CTA adds these to a partial histogram, and a second kernel adds the partial ones, a CTA
// per bin.
#define BINS 256
#define WARPS 6
#define MAX_MERGE_THREADS 256

extern "C" __global__ void histogram256(unsigned int *partial, const unsigned int *data, unsigned int words)
{
    __shared__ unsigned int counts[WARPS * BINS];
    unsigned int *own = counts + (threadIdx.x >> 5) * BINS;

    for (unsigned int i = threadIdx.x; i < WARPS * BINS; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();

    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += blockDim.x * gridDim.x) {
        unsigned int word = data[i];
        atomicAdd(&own[word & 0xff], 1u);
        atomicAdd(&own[(word >> 8) & 0xff], 1u);
        atomicAdd(&own[(word >> 16) & 0xff], 1u);
        atomicAdd(&own[word >> 24], 1u);
    }
    __syncthreads();

    for (unsigned int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned int sum = 0;
        for (unsigned int warp = 0; warp < WARPS; warp++)
            sum += counts[warp * BINS + bin];
        partial[blockIdx.x * BINS + bin] = sum;
    }
}

extern "C" __global__ void merge_histogram256(unsigned int *histogram, const unsigned int *partial, unsigned int count)
{
    __shared__ unsigned int sums[MAX_MERGE_THREADS];
    unsigned int sum = 0;

    for (unsigned int i = threadIdx.x; i < count; i += blockDim.x)
        sum += partial[blockIdx.x + i * BINS];
    sums[threadIdx.x] = sum;
    for (unsigned int width = blockDim.x / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            sums[threadIdx.x] += sums[threadIdx.x + width];
    }
    if (threadIdx.x == 0)
        histogram[blockIdx.x] = sums[0];
}
