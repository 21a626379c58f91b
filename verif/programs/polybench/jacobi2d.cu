/* jacobi2d: all sweeps in one cooperative launch, or two kernels per sweep */
#include <cooperative_groups.h>
#include <utility>
#include "poly.h"

namespace cg = cooperative_groups;

#define TSTEPS POLY_SIZE(2, 8, 20)
#define N POLY_SIZE(32, 66, 1000)

__device__ __forceinline__ DATA_TYPE average(const DATA_TYPE *A, int i, int j)
{
  return 0.2f * (A[i * N + j] + A[i * N + j - 1] + A[i * N + j + 1] + A[(i + 1) * N + j] + A[(i - 1) * N + j]);
}

__global__ void jacobi_all(DATA_TYPE *A, DATA_TYPE *B, int steps)
{
  cg::grid_group grid = cg::this_grid();
  const int inner = N - 2;
  for (int t = 0; t < steps; t++) {
    for (unsigned long long c = grid.thread_rank(); c < inner * inner; c += grid.size())
      B[(c / inner + 1) * N + c % inner + 1] = average(A, c / inner + 1, c % inner + 1);
    grid.sync();
    for (unsigned long long c = grid.thread_rank(); c < inner * inner; c += grid.size())
      A[(c / inner + 1) * N + c % inner + 1] = average(B, c / inner + 1, c % inner + 1);
    grid.sync();
  }
}

__global__ void jacobi_half(const DATA_TYPE *__restrict__ from, DATA_TYPE *__restrict__ to)
{
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if ((i >= 1) && (i < (N-1)) && (j >= 1) && (j < (N-1)))
    to[i * N + j] = average(from, i, j);
}

static void jacobi_host(DATA_TYPE *A, DATA_TYPE *B)
{
  for (int t = 0; t < 2 * TSTEPS; t++, std::swap(A, B))
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        B[i * N + j] = 0.2f * (A[i * N + j] + A[i * N + j - 1] + A[i * N + j + 1] +
                               A[(i + 1) * N + j] + A[(i - 1) * N + j]);
}

static int differences(const DATA_TYPE *a, const DATA_TYPE *d_b)
{
  POLY_1D(DATA_TYPE, b, N * N);
  int fail = 0;
  cudaMemcpy(b, d_b, sizeof(DATA_TYPE) * N * N, cudaMemcpyDeviceToHost);
  for (int i = 0; i < N * N; i++)
    fail += percent_diff(a[i], b[i]) > PERCENT_DIFF_ERROR_THRESHOLD;
  free(b);
  return fail;
}

int main(int argc, char *argv[])
{
  size_t bytes = sizeof(DATA_TYPE) * N * N;
  POLY_1D(DATA_TYPE, A, N * N);
  POLY_1D(DATA_TYPE, B, N * N);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      A[i * N + j] = B[i * N + j] = ((DATA_TYPE)i * (j + 2) + 10) / N;

  DATA_TYPE *A_gpu, *B_gpu;
  cudaMalloc((void **)&A_gpu, bytes);
  cudaMalloc((void **)&B_gpu, bytes);

  auto upload = [&] {
    cudaMemcpy(A_gpu, A, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(B_gpu, B, bytes, cudaMemcpyHostToDevice);
  };

  upload();
  dim3 block(32, 8), grid((N + 31) / 32, (N + 7) / 8);
  double t0 = rtclock();
  for (int t = 0; t < TSTEPS; t++)
    {
      jacobi_half<<<grid, block>>>(A_gpu, B_gpu);
      jacobi_half<<<grid, block>>>(B_gpu, A_gpu);
    }
  cudaDeviceSynchronize();
  printf("kernel per half sweep: %f s\n", rtclock() - t0);
  jacobi_host(A, B);
  int wrong = report("separate", differences(A, A_gpu));

  // the same from the start in a single launch
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      A[i * N + j] = B[i * N + j] = ((DATA_TYPE)i * (j + 2) + 10) / N;
  upload();
  int cooperative = 0, per_sm = 0, sms = 0, steps = TSTEPS, threads = 128;
  cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0);
  if (cooperative)
    {
      cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, jacobi_all, threads, 0);
      void *arguments[] = { &A_gpu, &B_gpu, &steps };
      t0 = rtclock();
      cudaLaunchCooperativeKernel((void *)jacobi_all, dim3(per_sm * sms), dim3(threads), arguments, 0, 0);
      cudaDeviceSynchronize();
      printf("one launch: %f s\n", rtclock() - t0);
      jacobi_host(A, B);
      wrong |= report("cooperative", differences(A, A_gpu));
    }
  cudaFree(A_gpu);
  cudaFree(B_gpu);
  free(A);
  free(B);
  return wrong;
}
