/* Inclusive scan by warp shuffles, with any associative operator, and a second pass over the sums of the blocks. */
#include <algorithm>
#include <climits>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sample_common.h"

constexpr int kThreads = 256;
constexpr unsigned kFull = 0xffffffffu;

template <typename T> struct Plus {
  static constexpr const char *name = "plus";
  __host__ __device__ static T identity() { return T(0); }
  __host__ __device__ T operator()(T a, T b) const { return a + b; }
};

template <typename T> struct Maximum {
  static constexpr const char *name = "maximum";
  __host__ __device__ static T identity() { return T(INT_MIN); }
  __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};

template <typename T, template <typename> class Op>
__device__ T warp_scan(T value, Op<T> op = Op<T>()) {
  const int lane = threadIdx.x & (warpSize - 1);
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) {
    T below = __shfl_up_sync(kFull, value, delta);
    if (lane >= delta) value = op(below, value);
  }
  return value;
}

template <typename T, template <typename> class Op>
__device__ T block_scan(T value, T *warps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_scan<T, Op>(value);
  if (lane == 31) warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    T sum = lane < (int)blockDim.x / 32 ? warps[lane] : Op<T>::identity();
    sum = warp_scan<T, Op>(sum);
    __syncwarp();
    if (lane < (int)blockDim.x / 32) warps[lane] = sum;
  }
  __syncthreads();
  return warp > 0 ? Op<T>()(warps[warp - 1], value) : value;
}

template <typename T, template <typename> class Op>
__global__ __launch_bounds__(kThreads) void scan_blocks(const T *in, T *out, T *sums, int n) {
  __shared__ T warps[kThreads / 32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  T value = block_scan<T, Op>(i < n ? in[i] : Op<T>::identity(), warps);
  if (i < n) out[i] = value;
  if constexpr (sizeof(T) > 0) {
    if (threadIdx.x == blockDim.x - 1 && sums != nullptr) sums[blockIdx.x] = value;
  }
}

template <typename T, class Op>
__global__ void add_carry(T *out, const T *sums, int n, Op op) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] = op(sums[blockIdx.x - 1], out[i]);
}

template <typename T> class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t n) : size_(n) { checkCudaErrors(cudaMalloc(&data_, n * sizeof(T))); }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  ~DeviceBuffer() { cudaFree(data_); }
  T *get() { return data_; }
  void from(const std::vector<T> &v) {
    checkCudaErrors(cudaMemcpy(data_, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> to_host() const {
    std::vector<T> v(size_);
    checkCudaErrors(cudaMemcpy(v.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  T *data_ = nullptr;
  size_t size_;
};

template <template <typename> class Op, typename T>
bool test(const std::vector<T> &values) {
  const int n = static_cast<int>(values.size());
  const int blocks = (n + kThreads - 1) / kThreads;
  if (blocks > kThreads) {
    fprintf(stderr, "at most %d values\n", kThreads * kThreads);
    exit(EXIT_WAIVED);
  }
  DeviceBuffer<T> in(n), out(n), sums(blocks);
  in.from(values);

  cudaStream_t stream;
  checkCudaErrors(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  StopWatch watch;
  scan_blocks<T, Op><<<blocks, kThreads, 0, stream>>>(in.get(), out.get(), sums.get(), n);
  scan_blocks<T, Op><<<1, kThreads, 0, stream>>>(sums.get(), sums.get(), nullptr, blocks);
  add_carry<<<blocks, kThreads, 0, stream>>>(out.get(), sums.get(), n, Op<T>{});
  checkCudaErrors(cudaStreamSynchronize(stream));
  const float ms = watch.ms();
  checkCudaErrors(cudaStreamDestroy(stream));

  std::vector<T> expected(n);
  std::partial_sum(values.begin(), values.end(), expected.begin(), Op<T>());
  const bool same = expected == out.to_host();
  printf("%-8s %s, %.3f ms\n", Op<T>::name, same ? "ok" : "FAILED", ms);
  return same;
}

int main(int argc, const char **argv) {
  const int n = flag_int(argc, argv, "n", 20000);
  std::mt19937 engine(1234);
  std::uniform_int_distribution<int> distribution(-50, 100);
  std::vector<int> values(n);
  std::generate_n(values.begin(), n, [&]() { return distribution(engine); });

  bool good = test<Plus>(values);
  good = test<Maximum>(values) && good;
  std::vector<long long> wide(values.begin(), values.end());
  good = test<Plus>(wide) && good;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
