#include "cuda_fp16.h"
#include "sample_common.h"

#include <cmath>
#include <cstdio>
#include <ctime>

#define BLOCKS 8
#define THREADS 128

__forceinline__ __device__ void fold_intrinsics(half2 *const v)
{
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            v[threadIdx.x] = __hadd2(v[threadIdx.x], v[threadIdx.x + width]);
    }
    __syncthreads();
}

__forceinline__ __device__ void fold_operators(half2 *const v)
{
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            v[threadIdx.x] += v[threadIdx.x + width];
    }
    __syncthreads();
}

__global__ void product_intrinsics(half2 const *const a, half2 const *const b, float *const sums,
                                               size_t const size)
{
    const int stride = gridDim.x * blockDim.x;
    __shared__ half2 partial[THREADS];

    half2 value = __float2half2_rn(0.f);
    for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += stride)
        value = __hfma2(a[i], b[i], value);
    partial[threadIdx.x] = value;
    fold_intrinsics(partial);

    if (threadIdx.x == 0) {
        half2 result = partial[0];
        sums[blockIdx.x] = __low2float(result) + __high2float(result);
    }
}

__global__ void product_native(half2 const *const a, half2 const *const b, float *const sums,
                                           size_t const size)
{
    const int stride = gridDim.x * blockDim.x;
    __shared__ half2 partial[THREADS];

    half2 value(0.f, 0.f);
    for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += stride)
        value = a[i] * b[i] + value;
    partial[threadIdx.x] = value;
    fold_operators(partial);

    if (threadIdx.x == 0) {
        half2 result = partial[0];
        sums[blockIdx.x] = (float)result.x + (float)result.y;
    }
}

/* in the tensor-core manner: half factors, float sums */
__global__ void mixedKernel(const __half *a, const __half *b, float *sums, size_t size)
{
    float sum = 0.0f;
    for (size_t i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += gridDim.x * blockDim.x) {
        __half product = __hmul(a[i], b[i]);
        if (!__hisnan(product))
            sum += __half2float(product);
    }
    for (int lanes = 16; lanes; lanes >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(&sums[blockIdx.x], sum);
}

void fill(half2 *a, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        half2 temp;
        temp.x = __float2half((float)(rand() % 4));
        temp.y = __float2half((float)(rand() % 2));
        a[i] = temp;
    }
}

typedef void (*Kernel)(half2 const *, half2 const *, float *, size_t);

int main(int argc, char *argv[])
{
    srand((unsigned int)time(NULL));
    size_t size = BLOCKS * THREADS * 4;
    half2 *vec[2];
    half2 *d_vec[2];
    float *sums, *d_sums;

    cudaDeviceProp devProp;
    checkCudaErrors(cudaGetDeviceProperties(&devProp, 0));
    if (devProp.major < 5 || (devProp.major == 5 && devProp.minor < 3)) {
        printf("ERROR: half arithmetic needs a GPU of SM 5.3 or higher.\n");
        return EXIT_WAIVED;
    }

    for (int i = 0; i < 2; ++i) {
        checkCudaErrors(cudaMallocHost((void **)&vec[i], size * sizeof *vec[i]));
        checkCudaErrors(cudaMalloc((void **)&d_vec[i], size * sizeof *d_vec[i]));
        fill(vec[i], size);
        checkCudaErrors(cudaMemcpy(d_vec[i], vec[i], size * sizeof *vec[i], cudaMemcpyHostToDevice));
    }
    checkCudaErrors(cudaMallocHost((void **)&sums, BLOCKS * sizeof *sums));
    checkCudaErrors(cudaMalloc((void **)&d_sums, BLOCKS * sizeof *d_sums));

    double expected = 0;
    for (size_t i = 0; i < size; i++)
        expected += (float)vec[0][i].x * (float)vec[1][i].x + (float)vec[0][i].y * (float)vec[1][i].y;

    bool right = true;
    auto finish = [&](const char *name) {
        checkCudaErrors(cudaMemcpy(sums, d_sums, BLOCKS * sizeof *sums, cudaMemcpyDeviceToHost));
        double sum = 0;
        for (int i = 0; i < BLOCKS; ++i) sum += sums[i];
        printf("Result %s\t: %f (expected %f)\n", name, sum, expected);
        right = right && fabs(sum - expected) < 1e-2 * expected;
    };

    const Kernel kernels[] = { product_native, product_intrinsics };
    const char *names[] = { "native operators", "intrinsics" };
    for (int k = 0; k < 2; k++) {
        kernels[k]<<<BLOCKS, THREADS>>>(d_vec[0], d_vec[1], d_sums, size);
        finish(names[k]);
    }
    checkCudaErrors(cudaMemset(d_sums, 0, BLOCKS * sizeof *d_sums));
    mixedKernel<<<BLOCKS, THREADS>>>((const __half *)d_vec[0], (const __half *)d_vec[1], d_sums, 2 * size);
    finish("mixed");

    printf("&&&& halfScalarProduct %s\n", right ? "PASSED" : "FAILED");
    for (int i = 0; i < 2; ++i) {
        checkCudaErrors(cudaFree(d_vec[i]));
        checkCudaErrors(cudaFreeHost(vec[i]));
    }
    checkCudaErrors(cudaFree(d_sums));
    checkCudaErrors(cudaFreeHost(sums));
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
