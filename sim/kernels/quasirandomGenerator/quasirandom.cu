// Niederreiter's quasirandom numbers, after the SDK's quasirandomGenerator: row y of a CTA has dimension y.
#define DIMENSIONS 3
#define BITS 31
#define SCALE 4.6566128709089882e-10f  // 1 / (2^31 + 1)

__constant__ unsigned int table[DIMENSIONS][BITS];

extern "C" __global__ void quasirandomGeneratorKernel(float *output, unsigned int seed, unsigned int count)
{
    const unsigned int *directions = table[threadIdx.y];

    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned int number = 0;
        unsigned int place = seed + i;
#pragma unroll 1
        for (int bit = 0; bit < BITS; bit++, place >>= 1)
            number ^= directions[bit] & -(place & 1);
        output[threadIdx.y * count + i] = (number + 1) * SCALE;
    }
}
