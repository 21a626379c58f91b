/* mvt.cu: x1 += A y1 and x2 += A^T y2. The kernels are written once, as a macro, and made for each type and direction. */
#include "poly.h"
#include <cstdio>
#include <chrono>
#include <type_traits>
#include <vector>

#ifndef N
#define N 192
#endif
#define THREADS 64

#define ROW(i, j) ((i) * N + (j))
#define COL(i, j) ((j) * N + (i))

#define MVT_KERNEL(name, type, INDEX)                                                   \
  __global__ void name(const type *__restrict__ a, type *x, const type *__restrict__ y) \
  {                                                                                     \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                      \
    if (i < N) {                                                                        \
      type sum = x[i];                                                                  \
      for (int j = 0; j < N; j++)                                                       \
        sum += a[INDEX(i, j)] * y[j];                                                   \
      x[i] = sum;                                                                       \
    }                                                                                   \
  }

#define FOR_TYPES(DO) DO(float) DO(double)
#define MAKE(type)                             \
  MVT_KERNEL(mvt_rows_##type, type, ROW)       \
  MVT_KERNEL(mvt_columns_##type, type, COL)

FOR_TYPES(MAKE)

#undef MAKE

/* the same over rows by a warp each, without macros */
template <typename T>
__global__ void mvt_warp(const T *a, T *x, const T *y)
{
  const unsigned lane = threadIdx.x & 31u, row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  if (row >= N) return;
  T sum = 0;
  for (unsigned j = lane; j < N; j += 32)
    sum += a[ROW(row, j)] * y[j];
#pragma unroll
  for (int mask = 16; mask; mask >>= 1)
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  if (lane == 0)
    x[row] += sum;
}

template <typename T> struct kernels;
#define BIND(type)                                                                   \
  template <> struct kernels<type> {                                                 \
    using function = void (*)(const type *, type *, const type *);                   \
    static function rows() { return mvt_rows_##type; }                               \
    static function columns() { return mvt_columns_##type; }                         \
    static const char *name() { return #type; }                                      \
  };
FOR_TYPES(BIND)

template <typename T> int run()
{
  using clock_type = std::chrono::steady_clock;
  static_assert(std::is_floating_point<T>::value, "a floating-point type");
  std::vector<T> a(N * N), x1(N), x2(N), y1(N), y2(N), out(N);
  for (int i = 0; i < N; i++) {
    x1[i] = (T)(i % 9) / N;
    x2[i] = (T)(i % 9 + 1) / N;
    y1[i] = (T)(i % 7 + 3) / N;
    y2[i] = (T)(i % 7 + 4) / N;
    for (int j = 0; j < N; j++) a[ROW(i, j)] = (T)(i * j % 11) / N;
  }
  T *d_a, *d_x1, *d_x2, *d_x3, *d_y1, *d_y2;
  auto put = [](T **d, const std::vector<T> &v) {
    cudaMalloc((void **)d, v.size() * sizeof(T));
    cudaMemcpy(*d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  };
  put(&d_a, a); put(&d_x1, x1); put(&d_x2, x2); put(&d_x3, x1); put(&d_y1, y1); put(&d_y2, y2);

  const auto begin = clock_type::now();
  auto rows = kernels<T>::rows();
  rows<<<(N + THREADS - 1) / THREADS, THREADS>>>(d_a, d_x1, d_y1);
  kernels<T>::columns()<<<(N + THREADS - 1) / THREADS, THREADS>>>(d_a, d_x2, d_y2);
  mvt_warp<T><<<(N * 32 + THREADS - 1) / THREADS, THREADS>>>(d_a, d_x3, d_y1);
  cudaDeviceSynchronize();
  std::chrono::duration<double, std::milli> spent = clock_type::now() - begin;
  printf("%s: %.3f ms\n", kernels<T>::name(), spent.count());

  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      x1[i] += a[ROW(i, j)] * y1[j];
      x2[i] += a[COL(i, j)] * y2[j];
    }
  int fail = 0;
  const std::pair<T *, const std::vector<T> *> results[] = { { d_x1, &x1 }, { d_x2, &x2 }, { d_x3, &x1 } };
  for (auto &[device, expected] : results) {
    cudaMemcpy(out.data(), device, N * sizeof(T), cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++) fail += percent_diff((*expected)[i], out[i]) > PERCENT_DIFF_ERROR_THRESHOLD;
  }
  for (T *p : { d_a, d_x1, d_x2, d_x3, d_y1, d_y2 }) cudaFree(p);
  return report(kernels<T>::name(), fail);
}

int main() { return run<float>() + run<double>(); }
