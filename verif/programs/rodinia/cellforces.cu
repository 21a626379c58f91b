// Soft-sphere forces with cell lists: one block per cell, which meets up to 26 neighbours.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <sys/time.h>

#define real float
#define PER_CELL 48
#define THREADS 64
#define SQUARE(v) ((v).x*(v).x + (v).y*(v).y + (v).z*(v).z)

typedef struct { real x, y, z; } vec3_t;
typedef struct { vec3_t at; real charge; } particle_t;

typedef struct neighbour
{
	int cell;
	signed char dx, dy, dz;
} neighbour_t;

typedef struct cell
{
	int x, y, z;
	int start;
	int n_neighbours;
	neighbour_t neighbours[26];
} cell_t;

typedef struct
{
	struct { int side; int cells; } grid;
	union { real cutoff; unsigned bits; } limit;
	real stiffness;
} world_t;

void checkCUDAError(const char *where)
{
	cudaError_t status = cudaGetLastError();
	if (status != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", where, cudaGetErrorString(status));
		exit(EXIT_FAILURE);
	}
}

__host__ __device__ inline vec3_t operator-(vec3_t a, vec3_t b)
{
	vec3_t d = { a.x - b.x, a.y - b.y, a.z - b.z };
	return d;
}

__host__ __device__ inline void push(world_t w, particle_t a, particle_t b, vec3_t &force)
{
	vec3_t d = a.at - b.at;
	real r2 = SQUARE(d);
	if (r2 > (real)0 && r2 < w.limit.cutoff * w.limit.cutoff) {
		real r = sqrtf(r2);
		real f = w.stiffness * a.charge * b.charge * (w.limit.cutoff - r) / r;
		force.x += f * d.x;
		force.y += f * d.y;
		force.z += f * d.z;
	}
}

__global__ void forces(world_t world, const cell_t *cells, const particle_t *particles, vec3_t *out)
{
	__shared__ particle_t mine[PER_CELL];
	__shared__ particle_t theirs[PER_CELL];

	int home = blockIdx.x;
	int tx = threadIdx.x;
	if (home >= world.grid.cells)
		return;

	int start = cells[home].start;
	for (int i = tx; i < PER_CELL; i += THREADS)
		mine[i] = particles[start + i];

	vec3_t sum = { 0, 0, 0 };
	int n = cells[home].n_neighbours;
	for (int k = -1; k < n; k++) {
		int other = k < 0 ? home : cells[home].neighbours[k].cell;
		__syncthreads();
		for (int i = tx; i < PER_CELL; i += THREADS)
			theirs[i] = particles[cells[other].start + i];
		__syncthreads();
		if (tx < PER_CELL)
			for (int j = 0; j < PER_CELL; j++)
				push(world, mine[tx], theirs[j], sum);
	}
	if (tx < PER_CELL)
		out[start + tx] = sum;
}

static void forces_host(world_t w, const cell_t *cells, const particle_t *p, vec3_t *out)
{
	for (int c = 0; c < w.grid.cells; c++)
		for (int i = 0; i < PER_CELL; i++) {
			vec3_t sum = { 0, 0, 0 };
			for (int k = -1; k < cells[c].n_neighbours; k++) {
				int other = k < 0 ? c : cells[c].neighbours[k].cell;
				for (int j = 0; j < PER_CELL; j++)
					push(w, p[cells[c].start + i], p[cells[other].start + j], sum);
			}
			out[cells[c].start + i] = sum;
		}
}

int main(int argc, char *argv[])
{
	world_t world;
	world.grid.side = 2;
	world.limit.cutoff = 0.7f;
	world.stiffness = 3.0f;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-side") == 0 && i + 1 < argc)
			world.grid.side = atoi(argv[++i]);
		else {
			printf("unknown argument %s (known: -side N)\n", argv[i]);
			return 1;
		}
	}
	int side = world.grid.side;
	world.grid.cells = side * side * side;
	int n = world.grid.cells * PER_CELL;

	cell_t *cells = (cell_t *)calloc(world.grid.cells, sizeof(cell_t));
	for (int c = 0; c < world.grid.cells; c++) {
		cell_t *p = &cells[c];
		p->x = c % side; p->y = c / side % side; p->z = c / (side * side);
		p->start = c * PER_CELL;
		for (int k = 0; k < 27; k++) {
			int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
			int x = p->x + dx, y = p->y + dy, z = p->z + dz;
			if (k == 13 || x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) continue;
			neighbour_t found = { x + side * (y + side * z), (signed char)dx, (signed char)dy, (signed char)dz };
			p->neighbours[p->n_neighbours++] = found;
		}
	}
	srand(4);
	particle_t *particles = (particle_t *)malloc(n * sizeof(particle_t));
	for (int i = 0; i < n; i++) {
		cell_t *home = &cells[i / PER_CELL];
		particles[i].at.x = home->x + rand() / (real)RAND_MAX;
		particles[i].at.y = home->y + rand() / (real)RAND_MAX;
		particles[i].at.z = home->z + rand() / (real)RAND_MAX;
		particles[i].charge = 0.5f + rand() % 2;
	}

	cell_t *d_cells; particle_t *d_particles; vec3_t *d_out;
	cudaMalloc((void **)&d_cells, world.grid.cells * sizeof(cell_t));
	cudaMalloc((void **)&d_particles, n * sizeof(particle_t));
	cudaMalloc((void **)&d_out, n * sizeof(vec3_t));
	cudaMemcpy(d_cells, cells, world.grid.cells * sizeof(cell_t), cudaMemcpyHostToDevice);
	cudaMemcpy(d_particles, particles, n * sizeof(particle_t), cudaMemcpyHostToDevice);
	checkCUDAError("copies");

	struct timeval t0, t1;
	gettimeofday(&t0, NULL);
	forces<<<world.grid.cells, THREADS>>>(world, d_cells, d_particles, d_out);
	checkCUDAError("launch");
	cudaDeviceSynchronize();
	gettimeofday(&t1, NULL);
	printf("%ld us\n", (t1.tv_sec - t0.tv_sec) * 1000000L + (t1.tv_usec - t0.tv_usec));

	vec3_t *out = (vec3_t *)malloc(n * sizeof(vec3_t)), *expected = (vec3_t *)malloc(n * sizeof(vec3_t));
	cudaMemcpy(out, d_out, n * sizeof(vec3_t), cudaMemcpyDeviceToHost);
	forces_host(world, cells, particles, expected);
	int bad = 0;
	for (int i = 0; i < n; i++) {
		vec3_t d = out[i] - expected[i];
		if (SQUARE(d) > 1e-6f * (1 + SQUARE(expected[i]))) bad++;
	}
	printf("%s\n", bad ? "FAILED" : "PASSED");
	cudaFree(d_cells); cudaFree(d_particles); cudaFree(d_out);
	free(cells); free(particles); free(out); free(expected);
	return bad != 0;
}
