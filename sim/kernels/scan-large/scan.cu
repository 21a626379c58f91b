// Exclusive scans of arrays of any power of two, after the SDK's later scan: CTAs scan four elements per thread each,
// the sums of these parts are scanned, and added to the parts.
#define MAX_THREADS 256

// Sums up to a thread's value, within groups of `size` threads. Before each group there are as many zeros.
__device__ static unsigned int up_to(unsigned int value, unsigned int *sums, unsigned int size)
{
    unsigned int at = 2 * threadIdx.x - (threadIdx.x & (size - 1));

    sums[at] = 0;
    at += size;
    sums[at] = value;
    for (unsigned int distance = 1; distance < size; distance *= 2) {
        __syncthreads();
        unsigned int sum = sums[at] + sums[at - distance];
        __syncthreads();
        sums[at] = sum;
    }
    return sums[at];
}

// Scans within groups of `size` elements, four per thread.
extern "C" __global__ void scanExclusiveShared(uint4 *output, const uint4 *input, unsigned int size)
{
    __shared__ unsigned int sums[2 * MAX_THREADS];
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

    uint4 element = input[i];
    element.y += element.x;
    element.z += element.y;
    element.w += element.z;
    unsigned int before = up_to(element.w, sums, size / 4) - element.w;
    output[i] = make_uint4(before, before + element.x, before + element.y, before + element.z);
}

// Scans the sums of the parts, within groups of `size` parts: a part's is its last result and its last element.
extern "C" __global__ void scanExclusiveShared2(unsigned int *before, const unsigned int *output,
                                                const unsigned int *input, unsigned int parts, unsigned int size,
                                                unsigned int elements_per_part)
{
    __shared__ unsigned int sums[2 * MAX_THREADS];
    unsigned int part = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int last = elements_per_part * part + elements_per_part - 1;
    unsigned int sum = 0;

    if (part < parts)
        sum = output[last] + input[last];
    unsigned int found = up_to(sum, sums, size) - sum;
    if (part < parts)
        before[part] = found;
}

// Adds to each part what is before it.
extern "C" __global__ void uniformUpdate(uint4 *output, const unsigned int *before)
{
    __shared__ unsigned int sum;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x == 0)
        sum = before[blockIdx.x];
    __syncthreads();
    uint4 element = output[i];
    element.x += sum;
    element.y += sum;
    element.z += sum;
    element.w += sum;
    output[i] = element;
}
