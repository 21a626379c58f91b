/* doitgen: multiresolution kernel, one plane r at a time through a scratch array */
#define NR POLY_SIZE(4, 16, 128)
#define NQ POLY_SIZE(8, 20, 128)
#define NP POLY_SIZE(16, 24, 128)
#include "poly.h"

namespace doitgen {

constexpr int block_x = 16, block_y = 8;

template <class T, int P> struct plane_view {
  T *base;
  __host__ __device__ T &operator()(int q, int p) const { return base[q * P + p]; }
};

template <class T>
__global__ void contract(int r, const T *__restrict__ A, const T *__restrict__ C4, T *__restrict__ sum)
{
  int p = blockIdx.x * block_x + threadIdx.x;
  int q = blockIdx.y * block_y + threadIdx.y;
  if (p >= NP || q >= NQ)
    return;
  plane_view<const T, NP> a{A + r * NQ * NP}, c{C4};
  T s = T(0);
  for (int k = 0; k < NP; k++)
    s += a(q, k) * c(k, p);
  plane_view<T, NP>{sum}(q, p) = s;
}

template <class T>
__global__ void write_back(int r, T *A, const T *sum)
{
  int p = blockIdx.x * block_x + threadIdx.x;
  int q = blockIdx.y * block_y + threadIdx.y;
  if (p < NP && q < NQ)
    A[(r * NQ + q) * NP + p] = sum[q * NP + p];
}

template <class T> void on_host(T *A, const T *C4)
{
  T sum[NP];
  for (int r = 0; r < NR; r++)
    for (int q = 0; q < NQ; q++) {
      for (int p = 0; p < NP; p++) {
        sum[p] = 0;
        for (int s = 0; s < NP; s++)
          sum[p] += A[(r * NQ + q) * NP + s] * C4[s * NP + p];
      }
      for (int p = 0; p < NP; p++)
        A[(r * NQ + q) * NP + p] = sum[p];
    }
}

namespace detail { inline int up(int a, int b) { return (a + b - 1) / b; } }

template <class T> void on_device(T *A, const T *C4)
{
  T *dA, *dC4, *dsum;
  cudaMalloc(&dA, sizeof(T) * NR * NQ * NP);
  cudaMalloc(&dC4, sizeof(T) * NP * NP);
  cudaMalloc(&dsum, sizeof(T) * NQ * NP);
  cudaMemcpy(dA, A, sizeof(T) * NR * NQ * NP, cudaMemcpyHostToDevice);
  cudaMemcpy(dC4, C4, sizeof(T) * NP * NP, cudaMemcpyHostToDevice);

  dim3 block(block_x, block_y), grid(detail::up(NP, block_x), detail::up(NQ, block_y));
  double start = rtclock();
  for (int r = 0; r < NR; r++) {
    contract<T><<<grid, block>>>(r, dA, dC4, dsum);
    write_back<<<grid, block>>>(r, dA, dsum);
  }
  cudaDeviceSynchronize();
  printf("GPU: %0.6lf s\n", rtclock() - start);
  cudaMemcpy(A, dA, sizeof(T) * NR * NQ * NP, cudaMemcpyDeviceToHost);
  cudaFree(dA);
  cudaFree(dC4);
  cudaFree(dsum);
}

} // namespace doitgen

template <class T> static int experiment(const char *name)
{
  POLY_1D(T, A, NR * NQ * NP);
  POLY_1D(T, G, NR * NQ * NP);
  POLY_1D(T, C4, NP * NP);
  for (int i = 0; i < NR * NQ * NP; i++)
    A[i] = G[i] = (T)(i % 31) / NP;
  for (int i = 0; i < NP * NP; i++)
    C4[i] = (T)(i % 37) / NP;
  doitgen::on_device(G, C4);
  doitgen::on_host(A, C4);
  int fail = 0;
  for (int i = 0; i < NR * NQ * NP; i++)
    fail += percent_diff(A[i], G[i]) > PERCENT_DIFF_ERROR_THRESHOLD;
  free(A); free(G); free(C4);
  return report(name, fail);
}

int main()
{
  return experiment<float>("float") | experiment<double>("double");
}
