/***************************************************************************
 * Electrostatic potential on a lattice from atoms in bins, with a cut-off.
 * The atoms of each launch travel through constant memory.
 ***************************************************************************/
#include <math.h>
#include "bench.h"

#define MAX_ATOMS  1000     /* 16 bytes each: within 64 KB of constant memory */
#define LINE       96
#define ERRTOL     1e-3f

typedef struct Vec3_t { float x, y, z; } Vec3;
typedef struct Atom_t { float x, y, z, q; } Atom;
typedef struct Atoms_t { Atom *atoms; int size; } Atoms;

typedef struct LatticeDim_t {
  int nx, ny, nz;
  Vec3 lo;
  float h;
} LatticeDim;

typedef struct Lattice_t { LatticeDim dim; float *lattice; } Lattice;

static __constant__ float4 atoms_c[MAX_ATOMS];
__device__ unsigned long long pairs_within;

static __global__ void add_potential(LatticeDim dim, int n, float cutoff2, float inv_cutoff2, float *lattice)
{
  __shared__ unsigned within;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z;
  if (threadIdx.x == 0 && threadIdx.y == 0)
    within = 0;
  __syncthreads();
  if (i < dim.nx && j < dim.ny) {
    float x = dim.lo.x + i * dim.h, y = dim.lo.y + j * dim.h, z = dim.lo.z + k * dim.h;
    float energy = 0.f;
    unsigned count = 0;
    for (int a = 0; a < n; a++) {
      float4 atom = atoms_c[a];
      float dx = atom.x - x, dy = atom.y - y, dz = atom.z - z;
      float r2 = dx * dx + dy * dy + dz * dz;
      if (r2 < cutoff2) {
        float s = 1.f - r2 * inv_cutoff2;
        energy += atom.w * rsqrtf(r2 + 1e-6f) * s * s;
        ++count;
      }
    }
    lattice[(k * dim.ny + j) * dim.nx + i] += energy;
    atomicAdd(&within, count);
  }
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0)
    atomicAdd(&pairs_within, (unsigned long long)within);
}

static Atoms *read_atoms(const char *fname)
{
  FILE *file = fname ? fopen(fname, "r") : NULL;
  Atoms *out = (Atoms *) malloc(sizeof(Atoms));
  char line[LINE];
  int capacity = 64;
  out->size = 0;
  out->atoms = (Atom *) malloc(capacity * sizeof(Atom));
  if (!file) {
    fprintf(stderr, "no file of atoms; making a crystal {4 x 4 x 4}\n");
    for (int i = 0; i < 64; i++) {
      Atom a = { i % 4 * 2.1f, i / 4 % 4 * 2.1f, i / 16 * 2.1f, i % 2 ? 1.f : -1.f };
      out->atoms[out->size++] = a;
    }
    return out;
  }
  while (fgets(line, LINE, file) != NULL) {
    Atom a;
    if (strncmp(line, "ATOM", 4)) continue;     /* skip anything that is not an atom */
    if (sscanf(line + 4, "%f %f %f %f", &a.x, &a.y, &a.z, &a.q) != 4) {
      fprintf(stderr, "not an atom: %s", line);
      exit(1);
    }
    if (out->size == capacity)
      out->atoms = (Atom *) realloc(out->atoms, (capacity *= 2) * sizeof(Atom));
    out->atoms[out->size++] = a;
  }
  fclose(file);
  return out;
}

static double potential_cpu(const Lattice *l, const Atoms *atoms, float cutoff, int i, int j, int k)
{
  double e = 0;
  for (int n = 0; n < atoms->size; n++) {
    const Atom *a = atoms->atoms + n;
    double dx = a->x - (l->dim.lo.x + i * l->dim.h), dy = a->y - (l->dim.lo.y + j * l->dim.h);
    double dz = a->z - (l->dim.lo.z + k * l->dim.h), r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cutoff * cutoff) {
      double s = 1 - r2 / (cutoff * cutoff);
      e += a->q / sqrt(r2 + 1e-6) * s * s;
    }
  }
  return e;
}

int main(int argc, char *argv[])
{
  struct bench_timers timers;
  struct bench_options options = bench_read_options(&argc, argv);
  bench_start(&timers);

  bench_switch(&timers, PHASE_IO);
  Atoms *atoms = read_atoms(options.n_inputs ? options.inputs[0] : NULL);
  const float cutoff = 4.f;
  Lattice lattice = { { 24, 20, 12, { -1.f, -1.f, -1.f }, 0.45f }, NULL };
  if (argc > 1) lattice.dim.nx = lattice.dim.ny = lattice.dim.nz = atoi(argv[1]);
  int n = lattice.dim.nx * lattice.dim.ny * lattice.dim.nz;
  lattice.lattice = (float *) calloc(n, sizeof(float));

  bench_switch(&timers, PHASE_COPY);
  float *d_lattice;
  cudaMalloc((void **)&d_lattice, n * sizeof(float));
  cudaMemset(d_lattice, 0, n * sizeof(float));
  CUDA_ERRCK;

  dim3 block(16, 4, 1);
  dim3 grid((lattice.dim.nx + block.x - 1) / block.x, (lattice.dim.ny + block.y - 1) / block.y, lattice.dim.nz);
  for (int start = 0; start < atoms->size; start += MAX_ATOMS) {
    int count = atoms->size - start < MAX_ATOMS ? atoms->size - start : MAX_ATOMS;
    bench_switch(&timers, PHASE_COPY);
    cudaMemcpyToSymbol(atoms_c, atoms->atoms + start, count * sizeof(Atom), 0, cudaMemcpyHostToDevice);
    bench_switch(&timers, PHASE_KERNEL);
    add_potential<<< grid, block, 0 >>>(lattice.dim, count, cutoff * cutoff, 1.f / (cutoff * cutoff), d_lattice);
    CUDA_ERRCK;
    cudaDeviceSynchronize();
  }

  unsigned long long within;
  cudaMemcpyFromSymbol(&within, pairs_within, sizeof within);
  cudaMemcpy(lattice.lattice, d_lattice, n * sizeof(float), cudaMemcpyDeviceToHost);

  bench_switch(&timers, PHASE_COMPUTE);
  int bad = 0;
  for (int k = 0; k < lattice.dim.nz; k++)
    for (int j = 0; j < lattice.dim.ny; j++)
      for (int i = 0; i < lattice.dim.nx; i++) {
        double e = potential_cpu(&lattice, atoms, cutoff, i, j, k);
        double g = lattice.lattice[(k * lattice.dim.ny + j) * lattice.dim.nx + i];
        if (fabs(e - g) > ERRTOL * (1 + fabs(e))) bad++;
      }
  bench_print(&timers);
  printf("%llu pairs within the cut-off; %d of %d points are wrong\n", within, bad, n);

  cudaFree(d_lattice);
  free(lattice.lattice);
  free(atoms->atoms);
  free(atoms);
  return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
