/*
 * Parallel reduction for three types: interleaved, unrolled by templates, and with cooperative groups.
 * Shared memory whose type depends on a template goes through DynamicShared<T>.
 */
#include <algorithm>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdint>
#include <iostream>
#include <vector>
#include "sample_common.h"

namespace cg = cooperative_groups;

enum ReduceType { REDUCE_INT, REDUCE_FLOAT, REDUCE_DOUBLE };

template <class T> struct DynamicShared {
    __device__ inline operator T *()
    {
        extern __shared__ int dynamic_words[];
        return (T *)dynamic_words;
    }
    __device__ inline operator const T *() const
    {
        extern __shared__ int dynamic_words[];
        return (T *)dynamic_words;
    }
};

// double needs the alignment of its own array
template <> struct DynamicShared<double> {
    __device__ inline operator double *()
    {
        extern __shared__ double dynamic_words_d[];
        return (double *)dynamic_words_d;
    }
};

template <class T> __device__ __forceinline__ T add_lanes(unsigned int mask, T sum)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(mask, sum, offset);
    return sum;
}

template <class T> __global__ void interleaved(T *in, T *out, unsigned int n)
{
    cg::thread_block cta = cg::this_thread_block();
    T *shared = DynamicShared<T>();
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

    shared[tid] = (i < n) ? in[i] : 0;
    cg::sync(cta);
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        if ((tid % (2 * s)) == 0)
            shared[tid] += shared[tid + s];
        cg::sync(cta);
    }
    if (tid == 0)
        out[blockIdx.x] = shared[0];
}

template <typename T, unsigned int blockSize, bool nIsPow2>
__global__ void unrolled(const T *__restrict__ in, T *__restrict__ out, unsigned int n)
{
    T *shared = DynamicShared<T>();
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
    T sum = 0;

    for (unsigned int gridSize = blockSize * 2 * gridDim.x; i < n; i += gridSize) {
        sum += in[i];
        if (nIsPow2 || i + blockSize < n)
            sum += in[i + blockSize];
    }
    sum = add_lanes<T>(0xffffffff, sum);
    if ((tid % warpSize) == 0)
        shared[tid / warpSize] = sum;
    __syncthreads();

    const unsigned int warps = blockSize / 32;
    const unsigned int ballot = __ballot_sync(0xffffffff, tid < warps);
    if (tid < 32) {
        sum = (ballot >> tid) & 1 ? shared[tid] : T(0);
        sum = add_lanes<T>(0xffffffff, sum);
    }
    if (tid == 0)
        out[blockIdx.x] = sum;
}

template <class T> __global__ void grouped(T *in, T *out, unsigned int n)
{
    T *shared = DynamicShared<T>();
    cg::thread_block cta = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cta);
    T threadVal = 0;
    for (unsigned i = blockIdx.x * cta.size() + cta.thread_rank(); i < n; i += gridDim.x * cta.size())
        threadVal += in[i];
    T warpSum = cg::reduce(tile, threadVal, cg::plus<T>());
    if (tile.thread_rank() == 0)
        shared[tile.meta_group_rank()] = warpSum;
    cta.sync();
    if (cta.thread_rank() == 0) {
        T total = 0;
        for (unsigned w = 0; w < tile.meta_group_size(); w++)
            total += shared[w];
        out[blockIdx.x] = total;
    }
}

#define LAUNCH_CASE(SIZE)                                                                      \
    case SIZE:                                                                                 \
        pow2 ? unrolled<T, SIZE, true><<<dimGrid, dimBlock, smemSize>>>(d_in, d_out, size) \
             : unrolled<T, SIZE, false><<<dimGrid, dimBlock, smemSize>>>(d_in, d_out, size); \
        break;

template <class T> void reduce(int size, int threads, int blocks, int variant, T *d_in, T *d_out)
{
    dim3 dimBlock(threads, 1, 1);
    dim3 dimGrid(blocks, 1, 1);
    int smemSize = threads * sizeof(T);
    bool pow2 = (size & (size - 1)) == 0;

    switch (variant) {
    case 0:
        interleaved<T><<<dimGrid, dimBlock, smemSize>>>(d_in, d_out, size);
        break;
    case 1:
    default:
        switch (threads) {
            LAUNCH_CASE(512)
            LAUNCH_CASE(256)
            LAUNCH_CASE(128)
            LAUNCH_CASE(64)
            LAUNCH_CASE(32)
        }
        break;
    case 2:
        grouped<<<dimGrid, dimBlock, smemSize>>>(d_in, d_out, size);
        break;
    }
}

// the forms that other files would link with
template void reduce<int>(int, int, int, int, int *, int *);
template void reduce<float>(int, int, int, int, float *, float *);
template void reduce<double>(int, int, int, int, double *, double *);

template <class T> bool test(int argc, const char **argv, ReduceType datatype)
{
    int size = flag_int(argc, argv, "n", 1 << 14), threads = flag_int(argc, argv, "threads", 128);
    std::vector<T> values(size);
    for (int i = 0; i < size; i++)
        values[i] = datatype == REDUCE_INT ? (T)(i * 2654435761u >> 24) : (T)((i * 2654435761u >> 24) / 255.0f);
    double expected = 0;
    for (T v : values) expected += v;

    bool right = true;
    for (int kernel = 0; kernel < 3; kernel++) {
        int blocks = kernel == 0 ? (size + threads - 1) / threads : std::min(64, (size + 2 * threads - 1) / (2 * threads));
        T *d_in = NULL, *d_out = NULL;
        checkCudaErrors(cudaMalloc((void **)&d_in, size * sizeof(T)));
        checkCudaErrors(cudaMalloc((void **)&d_out, blocks * sizeof(T)));
        checkCudaErrors(cudaMemcpy(d_in, values.data(), size * sizeof(T), cudaMemcpyHostToDevice));
        StopWatch timer;
        reduce<T>(size, threads, blocks, kernel, d_in, d_out);
        getLastCudaError("Kernel execution failed");
        checkCudaErrors(cudaDeviceSynchronize());
        float ms = timer.ms();
        std::vector<T> partial(blocks);
        checkCudaErrors(cudaMemcpy(partial.data(), d_out, blocks * sizeof(T), cudaMemcpyDeviceToHost));
        double sum = 0;
        for (T v : partial) sum += v;
        bool same = std::abs(sum - expected) <= (datatype == REDUCE_INT ? 0 : 1e-3 * expected);
        std::cout << "kernel " << kernel << ": " << sum << " in " << ms << " ms, " << (same ? "right" : "WRONG") << "\n";
        right = right && same;
        checkCudaErrors(cudaFree(d_in));
        checkCudaErrors(cudaFree(d_out));
    }
    return right;
}

int main(int argc, char **argv)
{
    const char **args = (const char **)argv;
    printf("%s Starting...\n\n", argv[0]);
    bool result = test<int>(argc, args, REDUCE_INT) & test<float>(argc, args, REDUCE_FLOAT) &
                  test<double>(argc, args, REDUCE_DOUBLE);
    printf(result ? "Test passed\n" : "Test failed!\n");
    exit(result ? EXIT_SUCCESS : EXIT_FAILURE);
}
