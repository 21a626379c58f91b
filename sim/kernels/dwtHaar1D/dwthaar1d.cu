// Haar wavelet decomposition of a signal, after the SDK's dwtHaar1D: a CTA takes two elements per thread and as many
// levels as these allow, or fewer. `output` gets the details, the coarsest first; `approximation` one value per CTA.
#define BANKS_LOG 4  // the SDK's: elements are spread by one place per 16 banks

#define INVERSE_SQRT_2 0.70710678118654752440f

__device__ static int spread(int i)
{
    return i + (i >> BANKS_LOG);
}

extern "C" __global__ void dwtHaar1D(const float *input, float *output, float *approximation, int levels)
{
    extern __shared__ float element[];
    int tid = threadIdx.x;
    int threads = blockDim.x;
    int begin = 2 * threads * blockIdx.x;

    element[tid] = input[begin + tid];
    element[tid + threads] = input[begin + tid + threads];
    __syncthreads();
    float left = element[2 * tid];
    float right = element[2 * tid + 1];
    __syncthreads();
    output[threads * (gridDim.x + blockIdx.x) + tid] = (left - right) * INVERSE_SQRT_2;
    element[spread(tid)] = (left + right) * INVERSE_SQRT_2;
    __syncthreads();

    int active = threads >> 1;
    int distance = 1;
    for (int level = 1; level < levels; level++) {
        if (tid < active) {
            int at = spread(2 * distance * tid);
            int neighbour = spread(2 * distance * tid + distance);
            output[active * (gridDim.x + blockIdx.x) + tid] = (element[at] - element[neighbour]) * INVERSE_SQRT_2;
            element[at] = (element[at] + element[neighbour]) * INVERSE_SQRT_2;
            active >>= 1;
            distance <<= 1;
        }
        __syncthreads();
    }
    if (tid == 0)
        approximation[blockIdx.x] = element[0];
}
