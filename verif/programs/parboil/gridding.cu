/*
 * Scatters weighted samples onto a regular grid: count per cell, prefix sum, reorder, gather.
 */
#include <math.h>
#include <float.h>
#include <stdint.h>
#include "bench.h"

#define BLOCKSIZE 128
#define SCAN_SIZE (2 * BLOCKSIZE)
#define PADDED(x) ((x) + ((x) >> 5))   /* one word of padding for each bank row */

typedef struct { float real, imag, kX, kY, kZ, sdc; } Sample;

typedef struct {
  int numSamples;
  int gridSize[3];
  float kernelWidth;
  float beta;
} parameters;

typedef union {
  float f;
  uint32_t u;
} float_bits;

__device__ __host__ static inline float weight(float d2, parameters params)
{
  float w = params.kernelWidth * 0.5f;
  return d2 < w * w ? expf(-params.beta * d2) : 0.f;
}

__device__ __host__ static __inline__ int cell_of(Sample s, parameters p)
{
  int x = (int)s.kX, y = (int)s.kY, z = (int)s.kZ;
  return (z * p.gridSize[1] + y) * p.gridSize[0] + x;
}

__global__ void binning_kernel(int n, const Sample *sample, unsigned *place, unsigned *counts,
                               parameters params)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int cell = cell_of(sample[i], params);
  place[i] = atomicAdd(counts + cell, 1u);   /* the sample's place in its cell */
}

/* exclusive scan of SCAN_SIZE elements by up- and down-sweep; the sum goes to `sums` */
__global__ void scan_blocks(unsigned *data, unsigned *sums, int n)
{
  __shared__ unsigned s[PADDED(SCAN_SIZE)];
  int base = blockIdx.x * SCAN_SIZE, t = threadIdx.x;
  s[PADDED(t)] = base + t < n ? data[base + t] : 0;
  s[PADDED(t + BLOCKSIZE)] = base + t + BLOCKSIZE < n ? data[base + t + BLOCKSIZE] : 0;

  unsigned stride = 1;
  for (int active = BLOCKSIZE; active > 0; active >>= 1, stride <<= 1) {
    __syncthreads();
    if (t < active)
      s[PADDED(stride * (2 * t + 2) - 1)] += s[PADDED(stride * (2 * t + 1) - 1)];
  }
  if (t == 0) {
    sums[blockIdx.x] = s[PADDED(SCAN_SIZE - 1)];
    s[PADDED(SCAN_SIZE - 1)] = 0;
  }
  for (int active = 1; active <= BLOCKSIZE; active <<= 1) {
    stride >>= 1;
    __syncthreads();
    if (t < active) {
      unsigned a = PADDED(stride * (2 * t + 1) - 1), b = PADDED(stride * (2 * t + 2) - 1);
      unsigned left = s[a];
      s[a] = s[b];
      s[b] += left;
    }
  }
  __syncthreads();
  if (base + t < n) data[base + t] = s[PADDED(t)];
  if (base + t + BLOCKSIZE < n) data[base + t + BLOCKSIZE] = s[PADDED(t + BLOCKSIZE)];
}

__global__ void add_offsets(unsigned *data, const unsigned *offsets, int n)
{
  int i = blockIdx.x * SCAN_SIZE + threadIdx.x;
  for (int k = 0; k < 2; k++, i += BLOCKSIZE)
    if (i < n) data[i] += offsets[blockIdx.x];
}

__global__ void reorder_kernel(int n, const unsigned *place, const unsigned *starts,
                               const Sample *in, Sample *out, parameters params)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[starts[cell_of(in[i], params)] + place[i]] = in[i];
}

__global__ void gather_kernel(const Sample *sample, const unsigned *starts, float2 *grid,
                             float *density, parameters params)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  int reach = (int)ceilf(params.kernelWidth * 0.5f);
  if (x >= params.gridSize[0]) return;
  float2 value = make_float2(0.f, 0.f);
  float sum = 0.f;
  for (int cz = max(z - reach, 0); cz <= min(z + reach, params.gridSize[2] - 1); cz++)
    for (int cy = max(y - reach, 0); cy <= min(y + reach, params.gridSize[1] - 1); cy++) {
      int row = (cz * params.gridSize[1] + cy) * params.gridSize[0];
      unsigned end = starts[row + min(x + reach, params.gridSize[0] - 1) + 1];
      for (unsigned i = starts[row + max(x - reach, 0)]; i < end; i++) {
        Sample s = sample[i];
        float dx = s.kX - x, dy = s.kY - y, dz = s.kZ - z;
        float w = weight(dx * dx + dy * dy + dz * dz, params) * s.sdc;
        value.x += w * s.real;
        value.y += w * s.imag;
        sum += w;
      }
    }
  int at = (z * params.gridSize[1] + y) * params.gridSize[0] + x;
  grid[at] = value;
  density[at] = sum;
}

static void read_parameters(FILE *file, parameters *p)
{
  char line[128], key[64];
  float v;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%63[^=]=%f", key, &v) != 2) continue;
    if (!strcmp(key, "samples")) p->numSamples = (int)v;
    else if (!strcmp(key, "grid.x")) p->gridSize[0] = (int)v;
    else if (!strcmp(key, "grid.y")) p->gridSize[1] = (int)v;
    else if (!strcmp(key, "grid.z")) p->gridSize[2] = (int)v;
    else if (!strcmp(key, "width")) p->kernelWidth = v;
    else printf("unknown parameter {%s}\n", key);
  }
}

int main(int argc, char *argv[])
{
  bench_options options = bench_read_options(&argc, argv);
  parameters params = { 2000, { 32, 16, 8 }, 3.0f, 0.8f };
  if (options.n_inputs) {
    FILE *f = fopen(options.inputs[0], "r");
    if (!f) { fprintf(stderr, "Cannot open %s\n", options.inputs[0]); exit(1); }
    read_parameters(f, &params);
    fclose(f);
  }
  int n = params.numSamples;
  int cells = params.gridSize[0] * params.gridSize[1] * params.gridSize[2], bins = cells + 1;

  Sample *samples = (Sample *)malloc(n * sizeof(Sample));
  float_bits b;
  uint32_t seed = 99;
  for (int i = 0; i < n; i++) {
    float r[6];
    for (int k = 0; k < 6; k++) {
      seed = seed * 1664525u + 1013904223u;
      b.u = (seed >> 9) | 0x3f800000u;        /* a float in [1, 2) */
      r[k] = b.f - 1.0f;
    }
    samples[i] = { r[0], r[1], r[2] * (params.gridSize[0] - 1), r[3] * (params.gridSize[1] - 1),
                   r[4] * (params.gridSize[2] - 1), 0.5f + r[5] };
  }

  int scan_blocks_n = (bins + SCAN_SIZE - 1) / SCAN_SIZE;
  Sample *d_in, *d_sorted;
  unsigned *d_key, *d_start, *d_sums;
  float2 *d_grid;
  float *d_density;
  cudaMalloc((void **)&d_in, n * sizeof(Sample));
  cudaMalloc((void **)&d_sorted, n * sizeof(Sample));
  cudaMalloc((void **)&d_key, n * sizeof(unsigned));
  cudaMalloc((void **)&d_start, bins * sizeof(unsigned));
  cudaMalloc((void **)&d_sums, scan_blocks_n * sizeof(unsigned));
  cudaMalloc((void **)&d_grid, cells * sizeof(float2));
  cudaMalloc((void **)&d_density, cells * sizeof(float));
  cudaMemcpy(d_in, samples, n * sizeof(Sample), cudaMemcpyHostToDevice);
  cudaMemset(d_start, 0, bins * sizeof(unsigned));
  CUDA_ERRCK;

  const int blocks = (n + BLOCKSIZE - 1) / BLOCKSIZE;
  binning_kernel<<<blocks, BLOCKSIZE>>>(n, d_in, d_key, d_start, params);
  scan_blocks<<<scan_blocks_n, BLOCKSIZE>>>(d_start, d_sums, bins);
  unsigned *sums = new unsigned[scan_blocks_n];
  cudaMemcpy(sums, d_sums, scan_blocks_n * sizeof(unsigned), cudaMemcpyDeviceToHost);
  for (unsigned i = 0, total = 0; i < (unsigned)scan_blocks_n; i++) {
    unsigned here = sums[i];
    sums[i] = total;
    total += here;
  }
  cudaMemcpy(d_sums, sums, scan_blocks_n * sizeof(unsigned), cudaMemcpyHostToDevice);
  add_offsets<<<scan_blocks_n, BLOCKSIZE>>>(d_start, d_sums, bins);
  reorder_kernel<<<blocks, BLOCKSIZE>>>(n, d_key, d_start, d_in, d_sorted, params);
  dim3 grid((params.gridSize[0] + 31) / 32, params.gridSize[1], params.gridSize[2]);
  gather_kernel<<<grid, 32>>>(d_sorted, d_start, d_grid, d_density, params);
  cudaDeviceSynchronize();
  CUDA_ERRCK;

  float *density = new float[cells], *expected = new float[cells]();
  cudaMemcpy(density, d_density, cells * sizeof(float), cudaMemcpyDeviceToHost);
  for (int c = 0; c < cells; c++)
    for (int i = 0; i < n; i++) {
      float dx = samples[i].kX - c % params.gridSize[0], dy = samples[i].kY - c / params.gridSize[0] % params.gridSize[1];
      float dz = samples[i].kZ - c / (params.gridSize[0] * params.gridSize[1]);
      expected[c] += weight(dx * dx + dy * dy + dz * dz, params) * samples[i].sdc;
    }
  float worst = -FLT_MAX;
  for (int c = 0; c < cells; c++) worst = fmaxf(worst, fabsf(density[c] - expected[c]));
  printf("largest difference in density: %g\n", worst);
  cudaFree(d_in); cudaFree(d_sorted); cudaFree(d_key); cudaFree(d_start);
  cudaFree(d_sums); cudaFree(d_grid); cudaFree(d_density);
  free(samples); delete[] sums; delete[] density; delete[] expected;
  return worst < 1e-3f ? 0 : 1;
}
