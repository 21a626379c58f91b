// Finite volumes of a compressible gas on an unstructured mesh, explicit Runge-Kutta in time.
#include <iostream>
#include <fstream>
#include <cmath>
#include <cstdlib>
#include <vector>
#include <initializer_list>

#if CUDART_VERSION >= 5000
#define GET_SYMBOL_OK 1
#endif

#define GAMMA 1.4f
#define DEFAULT_STEPS 20
#define NDIM 3
#define NNB 4
#define RK 3
#define FAR_MACH 0.6f

#ifndef BLOCK_CELLS
	#define BLOCK_CELLS 64
#endif

#define DENSITY 0
#define MOMENTUM  1
#define ENERGY (MOMENTUM+NDIM)
#define NVAR (ENERGY+1)

#define TRY(what) check_((what), #what, __LINE__)
inline void check_(cudaError_t e, const char* what, int line)
{
	if(e != cudaSuccess) { std::cerr << what << ", line " << line << ": " << cudaGetErrorString(e) << std::endl; std::exit(2); }
}

/* device arrays, by element type */
template <typename T>
T* device_array(size_t n, const std::vector<T>* from = nullptr)
{
	T* p = nullptr;
	TRY(cudaMalloc(&p, n * sizeof(T)));
	if(from) TRY(cudaMemcpy(p, from->data(), n * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

template <typename T, int WIDTH>
void duplicate(T* to, const T* from, int n)
{
	TRY(cudaMemcpy(to, from, WIDTH * n * sizeof(T), cudaMemcpyDeviceToDevice));
}

/* the far field */
__constant__ float far_state[NVAR];

__host__ __device__ inline float pressure_of(float density, float3 m, float energy)
{
	return (GAMMA - 1.0f) * (energy - 0.5f * (m.x*m.x + m.y*m.y + m.z*m.z) / density);
}

struct State
{
	float density;
	float3 momentum;
	float energy;

	__device__ __forceinline__ void load(const float* v, int i, int n)
	{
		density = v[i + DENSITY*n];
		momentum = make_float3(v[i + (MOMENTUM+0)*n], v[i + (MOMENTUM+1)*n], v[i + (MOMENTUM+2)*n]);
		energy = v[i + ENERGY*n];
	}
	__device__ __forceinline__ float pressure() const { return pressure_of(density, momentum, energy); }
	__device__ __forceinline__ float sound() const { return sqrtf(GAMMA * fmaxf(pressure(), 1e-6f) / density); }
};

__global__ void start_field(int cells, float* variables)
{
	const int i = (blockDim.x*blockIdx.x + threadIdx.x);
	if(i < cells)
		for(int j = 0; j < NVAR; j++)
			variables[i + j*cells] = far_state[j] * (j == ENERGY && i % 7 == 3 ? 1.1f : 1.0f);
}

__global__ void local_step(int cells, const float* __restrict__ variables, const float* areas, float* factors)
{
	const int i = (blockDim.x*blockIdx.x + threadIdx.x);
	if(i >= cells) return;
	State s;
	s.load(variables, i, cells);
	float speed = sqrtf(s.momentum.x*s.momentum.x + s.momentum.y*s.momentum.y + s.momentum.z*s.momentum.z) / s.density;
	factors[i] = 0.25f / (sqrtf(areas[i]) * (speed + s.sound()));
}

__global__ void residual(int cells, const int* neighbours, const float* __restrict__ normals, const float* variables, float* fluxes)
{
	const int i = (blockDim.x*blockIdx.x + threadIdx.x);
	if(i >= cells) return;
	State me;
	me.load(variables, i, cells);
	float p = me.pressure();
	float sum[NVAR] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};

	#pragma unroll
	for(int j = 0; j < NNB; j++)
	{
		const int nb = neighbours[i + j*cells];
		const float3 n = make_float3(normals[i + (j*NDIM+0)*cells], normals[i + (j*NDIM+1)*cells], normals[i + (j*NDIM+2)*cells]);
		State o = me;
		if(nb >= 0)               // a cell of the mesh
			o.load(variables, nb, cells);
		else if(nb == -2)         // the far field
		{
			o.density = far_state[DENSITY];
			o.momentum = make_float3(far_state[1], far_state[2], far_state[3]);
			o.energy = far_state[ENERGY];
		}
		else                      // a wing: it only pushes back
		{
			sum[1] -= n.x*p; sum[2] -= n.y*p; sum[3] -= n.z*p;
			continue;
		}
		float q = o.pressure();
		float un = (me.momentum.x*n.x + me.momentum.y*n.y + me.momentum.z*n.z) / me.density;
		float vn = (o.momentum.x*n.x + o.momentum.y*n.y + o.momentum.z*n.z) / o.density;
		float a = 0.5f * (fabsf(un) + fabsf(vn) + sqrtf(n.x*n.x + n.y*n.y + n.z*n.z) * (me.sound() + o.sound()));
		#define FLUX(mine, theirs, extra) (-0.5f * ((mine)*un + (theirs)*vn + (extra)) + 0.5f * a * ((theirs) - (mine)))
		sum[0] += FLUX(me.density, o.density, 0.0f);
		sum[1] += FLUX(me.momentum.x, o.momentum.x, (p + q)*n.x);
		sum[2] += FLUX(me.momentum.y, o.momentum.y, (p + q)*n.y);
		sum[3] += FLUX(me.momentum.z, o.momentum.z, (p + q)*n.z);
		sum[4] += FLUX(me.energy, o.energy, p*un + q*vn);
		#undef FLUX
	}
	for(int j = 0; j < NVAR; j++)
		fluxes[i + j*cells] = sum[j];
}

__global__ void update(int j, int cells, const float* old_variables, float* variables, const float* factors, const float* fluxes)
{
	const int i = (blockDim.x*blockIdx.x + threadIdx.x);
	if(i >= cells) return;
	float factor = factors[i]/float(RK+1-j);
	for(int k = 0; k < NVAR; k++)
		variables[i + k*cells] = old_variables[i + k*cells] + factor*fluxes[i + k*cells];
}

int main(int argc, char** argv)
{
	if(argc < 2)
	{
		std::cout << "usage: gasflow MESH [steps]; MESH is a file, or a number of cells for a ring" << std::endl;
		return 0;
	}
	int nel;
	std::vector<float> areas, normals;
	std::vector<int> neighbours;
	std::ifstream file(argv[1]);
	if(file) file >> nel; else nel = atoi(argv[1]);
	if(nel < 3) { std::cerr << "no mesh" << std::endl; return 1; }
	areas.assign(nel, 1.0f);
	neighbours.assign(nel*NNB, -2);
	normals.assign(nel*NNB*NDIM, 0.0f);
	for(int i = 0; i < nel; i++)
	{
		if(file) file >> areas[i];
		for(int j = 0; j < NNB; j++)
		{
			int nb = j == 0 ? (i+1)%nel : j == 1 ? (i+nel-1)%nel : -j;
			float n[NDIM] = {j == 0 ? 1.0f : j == 1 ? -1.0f : 0.0f, j == 2 ? 1.0f : j == 3 ? -1.0f : 0.0f, 0.0f};
			if(file) file >> nb >> n[0] >> n[1] >> n[2];
			neighbours[i + j*nel] = j == 3 && !file ? -1 : nb;
			for(int k = 0; k < NDIM; k++) normals[i + (j*NDIM+k)*nel] = n[k];
		}
	}
	float far[NVAR] = {1.4f, 1.4f*FAR_MACH, 0.0f, 0.0f, 0.0f};
	far[ENERGY] = 1.0f/(GAMMA-1.0f) + 0.5f*far[1]*far[1]/far[0];
	TRY(cudaMemcpyToSymbol(far_state, far, NVAR*sizeof(float)));

	auto variables = device_array<float>(nel*NVAR), old_variables = device_array<float>(nel*NVAR);
	auto fluxes = device_array<float>(nel*NVAR), factors = device_array<float>(nel);
	auto d_areas = device_array(nel, &areas), d_normals = device_array(nel*NNB*NDIM, &normals);
	auto d_neighbours = device_array<int>(nel*NNB, &neighbours);

	dim3 Dg((nel+BLOCK_CELLS-1) / BLOCK_CELLS), Db(BLOCK_CELLS);
	cudaEvent_t start, stop;
	cudaEventCreate(&start); cudaEventCreate(&stop);
	start_field<<<Dg, Db>>>(nel, variables);
	cudaEventRecord(start, 0);
	const int iterations = argc > 2 ? atoi(argv[2]) : DEFAULT_STEPS;
	for(int i = 0; i < iterations; i++)
	{
		duplicate<float, NVAR>(old_variables, variables, nel);
		local_step<<<Dg, Db>>>(nel, variables, d_areas, factors);
		for(int j = 0; j < RK; j++)
		{
			residual<<<Dg, Db>>>(nel, d_neighbours, d_normals, variables, fluxes);
			update<<<Dg, Db>>>(j, nel, old_variables, variables, factors, fluxes);
		}
	}
	cudaEventRecord(stop, 0);
	cudaEventSynchronize(stop);
	float ms;
	cudaEventElapsedTime(&ms, start, stop);
	std::cout << ms / iterations << " ms per iteration" << std::endl;

	std::vector<float> density(nel);
	TRY(cudaMemcpy(density.data(), variables, nel*sizeof(float), cudaMemcpyDeviceToHost));
	bool good = true;
	for(float d : density) good = good && std::isfinite(d) && d > 0;
	std::cout << (good ? "Done" : "FAILED: a density is not positive") << std::endl;

	for(void* p : {(void*)variables, (void*)old_variables, (void*)fluxes, (void*)factors,
	               (void*)d_areas, (void*)d_normals, (void*)d_neighbours})
		TRY(cudaFree(p));
	return good ? 0 : 1;
}
