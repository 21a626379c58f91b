// Scalar products of many pairs of vectors, after the SDK's scalarProd: a CTA takes one pair after the other, adds up
// products in 1024 accumulators in the scratchpad and those by a tree.
#define ACCUMULATORS 1024

extern "C" __global__ void scalarProdGPU(float *product, const float *a, const float *b, int vectors, int elements)
{
    __shared__ float accumulator[ACCUMULATORS];

    for (int vector = blockIdx.x; vector < vectors; vector += gridDim.x) {
        int begin = elements * vector;
        int end = begin + elements;

#pragma unroll 1
        for (int k = threadIdx.x; k < ACCUMULATORS; k += blockDim.x) {
            float sum = 0.0f;
#pragma unroll 1
            for (int i = begin + k; i < end; i += ACCUMULATORS)
                sum += a[i] * b[i];
            accumulator[k] = sum;
        }
        for (int half = ACCUMULATORS / 2; half > 0; half >>= 1) {
            __syncthreads();
#pragma unroll 1
            for (int k = threadIdx.x; k < half; k += blockDim.x)
                accumulator[k] += accumulator[k + half];
        }
        if (threadIdx.x == 0)
            product[vector] = accumulator[0];
        __syncthreads();  // before the next pair; the SDK relies on a warp's lanes being in step
    }
}
