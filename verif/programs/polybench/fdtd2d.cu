/* Two-dimensional FDTD; the kernels come first, the sizes from the command line of the compiler or from here. */
#include "poly.h"
#if !defined (TMAX) || !defined (NX) || \
    !defined (NY)
#  define TMAX 10
#  define NX 64
#  define NY 96
#endif
#define IDX(i, j) ((i) * NY + (j))
#define IDX1(i, j) ((i) * (NY + 1) + (j))

__global__ void step_ey(const DATA_TYPE *fict, DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t);
__global__ void step_ex(DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t);
__global__ void step_hz(DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t);

static DATA_TYPE *alloc_on_gpu(const DATA_TYPE *host, size_t n)
{
  DATA_TYPE *p;
  if (cudaMalloc((void **)&p, n * sizeof *p) != cudaSuccess) {
    fputs("out of device memory\n", stderr);
    exit(1);
  }
  cudaMemcpy(p, host, n * sizeof *p, cudaMemcpyHostToDevice);
  return p;
}

int main(int argc, char **argv)
{
  int i, j, t, fail = 0;
  POLY_1D(DATA_TYPE, fict, TMAX);
  POLY_1D(DATA_TYPE, ex, NX * (NY + 1));
  POLY_1D(DATA_TYPE, ey, (NX + 1) * NY);
  POLY_1D(DATA_TYPE, hz, NX * NY);
  POLY_1D(DATA_TYPE, result, NX * NY);

  for (t = 0; t < TMAX; t++) fict[t] = (DATA_TYPE)t;
  for (i = 0; i < NX * (NY + 1); i++) ex[i] = (i % 101) * 0.01f;
  for (i = 0; i < (NX + 1) * NY; i++) ey[i] = (i % 103) * 0.02f;
  for (i = 0; i < NX * NY; i++) hz[i] = (i % 107) * 0.03f;

  DATA_TYPE *d_fict = alloc_on_gpu(fict, TMAX), *d_ex = alloc_on_gpu(ex, NX * (NY + 1)),
    *d_ey = alloc_on_gpu(ey, (NX + 1) * NY), *d_hz = alloc_on_gpu(hz, NX * NY);

  dim3 block = dim3(32, 8);
  dim3 grid = dim3((NY + 32) / 32, (NX + 8) / 8);
  double start = rtclock();
  for (t = 0; t < TMAX; t++)
    {
      step_ey <<< grid, block >>> (d_fict, d_ex, d_ey, d_hz, t);
      step_ex <<< grid, block >>> (d_ex, d_ey, d_hz, t);
      step_hz <<< grid, block >>> (d_ex, d_ey, d_hz, t);
    }
  cudaDeviceSynchronize();
  printf("GPU Time: %f s\n", rtclock() - start);
  cudaMemcpy(result, d_hz, sizeof(DATA_TYPE) * NX * NY, cudaMemcpyDeviceToHost);

  for (t = 0; t < TMAX; t++)
    {
      for (j = 0; j < NY; j++) ey[IDX(0, j)] = fict[t];
      for (i = 1; i < NX; i++)
        for (j = 0; j < NY; j++)
          ey[IDX(i, j)] -= 0.5f * (hz[IDX(i, j)] - hz[IDX(i - 1, j)]);
      for (i = 0; i < NX; i++)
        for (j = 1; j < NY; j++)
          ex[IDX1(i, j)] -= 0.5f * (hz[IDX(i, j)] - hz[IDX(i, j - 1)]);
      for (i = 0; i < NX; i++)
        for (j = 0; j < NY; j++)
          hz[IDX(i, j)] -= 0.7f * (ex[IDX1(i, j + 1)] - ex[IDX1(i, j)] + ey[IDX(i + 1, j)] - ey[IDX(i, j)]);
    }
  for (i = 0; i < NX * NY; i++)
    fail += percent_diff(hz[i], result[i]) > PERCENT_DIFF_ERROR_THRESHOLD;

  cudaFree(d_fict); cudaFree(d_ex); cudaFree(d_ey); cudaFree(d_hz);
  free(fict); free(ex); free(ey); free(hz); free(result);
  return report("hz", fail);
}

#define POSITION                                    \
  int j = blockIdx.x * blockDim.x + threadIdx.x;    \
  int i = blockIdx.y * blockDim.y + threadIdx.y

__global__ void step_ey(const DATA_TYPE *fict, DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t)
{
  POSITION;
  if (i < NX && j < NY)
    ey[IDX(i, j)] = i == 0 ? fict[t] : ey[IDX(i, j)] - 0.5f * (hz[IDX(i, j)] - hz[IDX(i - 1, j)]);
}

__global__ void step_ex(DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t)
{
  POSITION;
  if (i < NX && j > 0 && j < NY)
    ex[IDX1(i, j)] = ex[IDX1(i, j)] - 0.5f * (hz[IDX(i, j)] - hz[IDX(i, j - 1)]);
}

__global__ void step_hz(DATA_TYPE *ex, DATA_TYPE *ey, DATA_TYPE *hz, int t)
{
  POSITION;
  if (i < NX && j < NY)
    hz[IDX(i, j)] -= 0.7f * (ex[IDX1(i, j + 1)] - ex[IDX1(i, j)] + ey[IDX(i + 1, j)] - ey[IDX(i, j)]);
}
