/*
 * C = alpha * A * B^T + beta * C, column-major, register tiling:
 * a thread keeps COLUMNS elements of one row of C.
 */
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>
#include "bench.h"

#define COLUMNS 16 // of C, in the registers of a thread
#define DEPTH 8    // of k, in shared memory
#define ROWS (COLUMNS * DEPTH)

// element (i, j) of a column-major matrix with leading dimension ld
#define CM(matrix, ld, i, j) (matrix)[(i) + (j) * (ld)]

template <int NC, int ND>
__global__ void gemm_nt(const float *A, int lda, const float *B, int ldb, float *C, int ldc, int k, float alpha,
                        float beta)
{
  __shared__ float slab[ND][NC];
  float sum[NC] = {};

  const int row = blockIdx.x * (NC * ND) + threadIdx.y * NC + threadIdx.x;
  const int first = blockIdx.y * NC;

  for (int base = 0; base < k; base += ND) {
    slab[threadIdx.y][threadIdx.x] = CM(B, ldb, first + threadIdx.x, base + threadIdx.y);
    __syncthreads();
    for (int d = 0; d < ND; d++) {
      const float a = CM(A, lda, row, base + d);
#pragma unroll
      for (int c = 0; c < NC; c++)
        sum[c] = fmaf(a, slab[d][c], sum[c]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int c = 0; c < NC; c++) {
    float &out = CM(C, ldc, row, first + c);
    out = (beta == 0.0f ? 0.0f : beta * out) + alpha * sum[c];
  }
}

// the form that the launch below uses
template __global__ void gemm_nt<COLUMNS, DEPTH>(const float *, int, const float *, int, float *, int, int, float,
                                                 float);

void launch(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C)
{
  if ((m % ROWS) || (n % COLUMNS) || (k % DEPTH)) {
    std::cerr << "m must be a multiple of " << ROWS << ", n of " << COLUMNS << ", k of " << DEPTH << "\n";
    exit(1);
  }
  dim3 grid(m / ROWS, n / COLUMNS), threads(COLUMNS, DEPTH);
  gemm_nt<COLUMNS, DEPTH><<<grid, threads>>>(A, m, B, n, C, m, k, alpha, beta);
  CUDA_ERRCK;
}

bool readMatrix(const char *fn, int &rows, int &cols, std::vector<float> &v)
{
  std::fstream f(fn, std::fstream::in);
  if (!f.good())
    return false;
  f >> rows >> cols;
  float data;
  v.clear();
  while (f >> data)
    v.push_back(data);
  return v.size() == size_t(rows) * cols;
}

int main(int argc, char *argv[])
{
  bench_timers timers;
  bench_start(&timers);
  bench_options options = bench_read_options(&argc, argv);

  int rowsA = 128, colsA = 64, rowsB = 64, colsB = 96;
  std::vector<float> a, bt;
  bench_switch(&timers, PHASE_IO);
  if (options.n_inputs == 2) {
    if (!readMatrix(options.inputs[0], rowsA, colsA, a) ||
        !readMatrix(options.inputs[1], colsB, rowsB, bt)) {
      std::cerr << "Expecting two readable matrices, A and B transposed" << std::endl;
      return 1;
    }
  } else {
    for (int i = 0; i < rowsA * colsA; i++) a.push_back((i * 7 % 13) / 13.0f);
    for (int i = 0; i < rowsB * colsB; i++) bt.push_back((i * 5 % 11) / 11.0f);
  }

  bench_switch(&timers, PHASE_COPY);
  float *dA, *dB, *dC;
  size_t bytesC = rowsA * colsB * sizeof(float);
  std::vector<float> c_(rowsA * colsB);
  cudaMalloc((void **)&dA, a.size() * sizeof(float));
  cudaMalloc((void **)&dB, bt.size() * sizeof(float));
  cudaMalloc((void **)&dC, bytesC);
  cudaMemcpy(dA, &a.front(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dB, &bt.front(), bt.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(dC, 0, bytesC);

  bench_switch(&timers, PHASE_KERNEL);
  launch(rowsA, colsB, colsA, 1.0f, dA, dB, 0.0f, dC);
  cudaDeviceSynchronize();

  bench_switch(&timers, PHASE_COPY);
  cudaMemcpy(&c_.front(), dC, bytesC, cudaMemcpyDeviceToHost);
  cudaFree(dA); cudaFree(dB); cudaFree(dC);

  bench_switch(&timers, PHASE_COMPUTE);
  double worst = 0;
  for (int r = 0; r < rowsA; r++)
    for (int c = 0; c < colsB; c++) {
      double sum = 0;
      for (int k = 0; k < colsA; k++)
        sum += double(a[r + k * rowsA]) * bt[c + k * colsB];
      worst = std::max(worst, std::fabs(sum - c_[r + c * rowsA]));
    }
  if (options.output) {
    std::ofstream out(options.output);
    out << rowsA << " " << colsB << " ";
    for (float v : c_) out << v << ' ';
  }
  bench_print(&timers);
  std::cout << "largest difference: " << worst << std::endl;
  return worst < 1e-2 ? 0 : 1;
}
