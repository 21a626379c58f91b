// Q matrix of a non-Cartesian MR reconstruction: a sum of cosines over the sampled frequencies.
#include <math.h>
#include <errno.h>
#include "bench.h"

#define PI   3.1415926535897932384626433832795029f
#define PIx2 6.2831853071795864769252867665590058f

#define THREADS_PHI 128
#define THREADS_Q 64
#define FREQUENCIES_PER_LAUNCH 256

#define DIV_UP(x, y) (((x) + (y) - 1) / (y))

struct __align__(16) frequency {
  float x;
  float y;
  float z;
  float power;
};

/* Values in the k-space trajectory, a launch's worth */
__constant__ __device__ frequency ck[FREQUENCIES_PER_LAUNCH];

__global__ void phi_kernel(const float *re, const float *im, float *power, int n)
{
  int i = blockIdx.x * THREADS_PHI + threadIdx.x;
  if (i < n)
    power[i] = re[i] * re[i] + im[i] * im[i];
}

__global__ void q_kernel(int n, int first, const float *x, const float *y, const float *z, float *Qr, float *Qi)
{
  // one voxel per thread: its coordinates and sums stay in registers
  int v = blockIdx.x * THREADS_Q + threadIdx.x;
  float sX = x[v], sY = y[v], sZ = z[v];
  float sQr = Qr[v], sQi = Qi[v];
  int k = 0;

  if (n % 2) {
    float arg = PIx2 * (ck[0].x * sX + ck[0].y * sY + ck[0].z * sZ);
    sQr += ck[0].power * __cosf(arg);
    sQi += ck[0].power * __sinf(arg);
    k = 1;
  }
  for (; k < n; k += 2, first += 2) {
    float a = PIx2 * (ck[k].x * sX + ck[k].y * sY + ck[k].z * sZ);
    float b = PIx2 * (ck[k + 1].x * sX + ck[k + 1].y * sY + ck[k + 1].z * sZ);
    sQr += ck[k].power * cosf(a) + ck[k + 1].power * cosf(b);
    sQi += ck[k].power * sinf(a) + ck[k + 1].power * sinf(b);
  }
  Qr[v] = sQr;
  Qi[v] = sQi;
}

struct problem {
  int numK, numX;
  float *k[3], *x[3], *phiR, *phiI;
};

#define EACH_ARRAY(p, action)                                   \
  do {                                                          \
    for (int d_ = 0; d_ < 3; d_++) {                            \
      action((p)->k[d_], (p)->numK);                            \
      action((p)->x[d_], (p)->numX);                            \
    }                                                           \
    action((p)->phiR, (p)->numK);                               \
    action((p)->phiI, (p)->numK);                               \
  } while (0)

static void input(struct problem *p, const char *name)
{
  FILE *f = NULL;
  unsigned seed = 42;
  if (name) {
    f = fopen(name, "rb");
    if (!f || fread(&p->numK, sizeof(int), 1, f) != 1 || fread(&p->numX, sizeof(int), 1, f) != 1) {
      fprintf(stderr, "%s: %s\n", name, strerror(errno));
      exit(1);
    }
  }
#define READ(array, n)                                                     \
  (array) = (float *)malloc(sizeof(float) * (n));                          \
  for (int i_ = 0; i_ < (n); i_++)                                         \
    if (!f || fread(&(array)[i_], sizeof(float), 1, f) != 1) {             \
      seed = seed * 69069u + 1u;                                           \
      (array)[i_] = (seed >> 8) / 16777216.0f - 0.5f;                      \
    }
  EACH_ARRAY(p, READ);
  if (f) fclose(f);
}

template <typename T> static T *to_device(const T *host, size_t n)
{
  T *d;
  cudaMalloc((void **)&d, n * sizeof(T));
  if (host) cudaMemcpy(d, host, n * sizeof(T), cudaMemcpyHostToDevice);
  else cudaMemset(d, 0, n * sizeof(T));
  CUDA_ERRCK;
  return d;
}

int main(int argc, char *argv[])
{
  struct bench_timers timers;
  bench_start(&timers);
  bench_options options = bench_read_options(&argc, argv);
  problem p;
  p.numK = argc > 1 ? atoi(argv[1]) : 300;
  p.numX = argc > 2 ? atoi(argv[2]) : 512;

  bench_switch(&timers, PHASE_IO);
  input(&p, options.n_inputs ? options.inputs[0] : NULL);
  p.numX = p.numX / THREADS_Q * THREADS_Q;
  printf("%d pixels in output; %d samples in trajectory\n", p.numX, p.numK);

  bench_switch(&timers, PHASE_COPY);
  float *re = to_device(p.phiR, p.numK), *im = to_device(p.phiI, p.numK), *power = to_device<float>(0, p.numK);
  float *x = to_device(p.x[0], p.numX), *y = to_device(p.x[1], p.numX), *z = to_device(p.x[2], p.numX);
  float *Qr = to_device<float>(0, p.numX), *Qi = to_device<float>(0, p.numX);

  bench_switch(&timers, PHASE_KERNEL);
  phi_kernel <<< DIV_UP(p.numK, THREADS_PHI), THREADS_PHI >>> (re, im, power, p.numK);
  float *h_power = new float[p.numK];
  cudaMemcpy(h_power, power, p.numK * sizeof(float), cudaMemcpyDeviceToHost);
  frequency *all = new frequency[p.numK];
  for (int i = 0; i < p.numK; i++)
    all[i] = { p.k[0][i], p.k[1][i], p.k[2][i], h_power[i] };
  for (int first = 0; first < p.numK; first += FREQUENCIES_PER_LAUNCH) {
    int n = p.numK - first < FREQUENCIES_PER_LAUNCH ? p.numK - first : FREQUENCIES_PER_LAUNCH;
    cudaMemcpyToSymbol(ck, all + first, n * sizeof(frequency), 0);
    q_kernel <<< dim3(p.numX / THREADS_Q, 1), dim3(THREADS_Q, 1) >>>
      (n, first, x, y, z, Qr, Qi);
    CUDA_ERRCK;
  }
  cudaDeviceSynchronize();

  bench_switch(&timers, PHASE_COMPUTE);
  float *out = new float[p.numX];
  cudaMemcpy(out, Qr, p.numX * sizeof(float), cudaMemcpyDeviceToHost);
  double worst = 0;
  for (int v = 0; v < p.numX; v += 17) {
    double sum = 0;
    for (int i = 0; i < p.numK; i++)
      sum += (p.phiR[i] * p.phiR[i] + p.phiI[i] * p.phiI[i]) *
             cos(PIx2 * (p.k[0][i] * p.x[0][v] + p.k[1][i] * p.x[1][v] + p.k[2][i] * p.x[2][v]));
    worst = fmax(worst, fabs(sum - out[v]));
  }
  bench_print(&timers);
  printf("largest difference: %g\n", worst);
  for (float *d : { re, im, power, x, y, z, Qr, Qi }) cudaFree(d);
#define RELEASE(array, n) free(array); (void)(n)
  EACH_ARRAY(&p, RELEASE);
  delete[] h_power; delete[] all; delete[] out;
  return worst > 1e-2;
}
