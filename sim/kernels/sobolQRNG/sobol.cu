// Sobol's quasirandom numbers, after the SDK's sobolQRNG: a row of CTAs has a dimension. Numbers are taken in the order
// of the Gray code, in which two that follow each other differ in a single bit; a thread takes every `stride`-th.
#define DIRECTIONS 32

// The grid's width in threads must be a power of two, and at least two.
extern "C" __global__ void sobolGPU_kernel(float *output, const unsigned int *directions, unsigned int vectors)
{
    __shared__ unsigned int v[DIRECTIONS];
    unsigned int stride = gridDim.x * blockDim.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    output += blockIdx.y * vectors;
    directions += blockIdx.y * DIRECTIONS;

    if (threadIdx.x < DIRECTIONS)
        v[threadIdx.x] = directions[threadIdx.x];
    __syncthreads();

    unsigned int bits = __ffs(stride) - 1;
    unsigned int gray = i ^ i >> 1;
    unsigned int x = 0;
    for (unsigned int k = 0; k <= bits; k++) {
        x ^= v[k] & -(gray & 1);
        gray >>= 1;
    }
    // From i to i + stride the bit below the stride's changes, and that of the lowest zero of i above it.
    unsigned int always = v[bits - 1];
    for (; i < vectors; i += stride) {
        output[i] = x * 2.3283064365386963e-10f;  // 2^-32
        x ^= always ^ v[__ffs(~(i | (stride - 1))) - 1];
    }
}
