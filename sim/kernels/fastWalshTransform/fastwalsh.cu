// The Walsh-Hadamard transform of a signal in natural order, after the SDK's fastWalshTransform: steps of radix 4 in
// global memory until the parts fit into the scratchpad, which has the other steps in one kernel.
#define MAX_ELEMENTS 2048  // of a part

__device__ static void butterfly(float &a, float &b, float &c, float &d)
{
    float sum = a + c, difference = a - c;
    float sum2 = b + d, difference2 = b - d;
    a = sum + sum2;
    b = sum - sum2;
    c = difference + difference2;
    d = difference - difference2;
}

// All steps of a part of 2^log elements per CTA, of radix 4 and at last, for an odd `log`, of radix 2.
extern "C" __global__ void fwtBatch1Kernel(float *output, const float *input, int log)
{
    __shared__ float element[MAX_ELEMENTS];
    const int elements = 1 << log;
    input += blockIdx.x << log;
    output += blockIdx.x << log;

    for (int i = threadIdx.x; i < elements; i += blockDim.x)
        element[i] = input[i];

    int i = threadIdx.x;
    for (int stride = elements >> 2; stride > 0; stride >>= 2) {
        int low = i & (stride - 1);
        float *at = element + ((i - low) << 2) + low;
        __syncthreads();
        butterfly(at[0], at[stride], at[2 * stride], at[3 * stride]);
    }
    if (log & 1) {
        __syncthreads();
        for (int pair = threadIdx.x; pair < elements / 2; pair += blockDim.x) {
            float left = element[2 * pair];
            float right = element[2 * pair + 1];
            element[2 * pair] = left + right;
            element[2 * pair + 1] = left - right;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < elements; i += blockDim.x)
        output[i] = element[i];
}

// One step of radix 4. The grid has a row of CTAs for each part, and a thread for four elements of it.
extern "C" __global__ void fwtBatch2Kernel(float *output, const float *input, int stride)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int part = blockIdx.y * blockDim.x * gridDim.x * 4;
    const int low = i & (stride - 1);
    const int at = part + ((i - low) << 2) + low;

    float a = input[at];
    float b = input[at + stride];
    float c = input[at + 2 * stride];
    float d = input[at + 3 * stride];
    butterfly(a, b, c, d);
    output[at] = a;
    output[at + stride] = b;
    output[at + 2 * stride] = c;
    output[at + 3 * stride] = d;
}
