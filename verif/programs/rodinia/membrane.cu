//==============================================================================================100
//	Heun steps of a small membrane model; a thread per cell, all state in registers.
//==============================================================================================100

// #include "parallel_in_one_cell.h"
/* #include "not_there.h" */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <time.h>
#include "common.h"
#include "membrane_model.cuh"

//==============================================================================================100
//	KERNEL
//==============================================================================================100

__global__ void heun(	run_settings settings,
						fp *d_states,
						const fp *d_coefficients,
						int *d_diverged)
{
	int cell = blockIdx.x * N_THREADS + threadIdx.x;
	if(cell < settings.cells){
		fp y[N_STATES], guess[N_STATES];
		fp k1[N_STATES], k2[N_STATES];
		const fp *c = d_coefficients + cell*N_COEFFICIENTS;

		for(int i=0; i<N_STATES; i++)
			y[i] = d_states[i*settings.cells + cell];

		for(int step=0; step<settings.steps; step++){
			fp t = step * settings.dt;
			derivatives(t, y, c, k1);
			for(int i=0; i<N_STATES; i++)
				guess[i] = y[i] + settings.dt * k1[i];
			derivatives(t + settings.dt, guess, c, k2);
			for(int i=0; i<N_STATES; i++){
				y[i] += settings.dt * (fp)0.5 * (k1[i] + k2[i]);
				if(!isfinite(y[i])){
					atomicAdd(d_diverged, 1);
					y[i] = 0;
				}
			}
		}

		for(int i=0; i<N_STATES; i++)
			d_states[i*settings.cells + cell] = y[i];
	}
}

//==============================================================================================100
//	HOST: the same functions, compiled for the host
//==============================================================================================100

void heun_host(run_settings s, int cell, fp *states, const fp *c)
{
	fp y[N_STATES], g[N_STATES], a[N_STATES], b[N_STATES];
	int i, j;
	for(i=0; i<N_STATES; i++) y[i] = states[i*s.cells + cell];
	for(j=0; j<s.steps; j++){
		derivatives(j*s.dt, y, c, a);
		for(i=0; i<N_STATES; i++) g[i] = y[i] + s.dt*a[i];
		derivatives(j*s.dt + s.dt, g, c, b);
		for(i=0; i<N_STATES; i++) y[i] += s.dt * (fp)0.5 * (a[i] + b[i]);
	}
	for(i=0; i<N_STATES; i++) states[i*s.cells + cell] = y[i];
}

int main(int argc, char *argv [])
{
	run_settings settings;
	clock_t before, after;
	int i, k;

	if(argc != 3){
		printf("two arguments: steps cells\n");
		return 0;
	}
	settings.steps = atoi(argv[1]);
	settings.cells = atoi(argv[2]);
	settings.dt = 0.001f;
	if(settings.steps < 0 || settings.cells <= 0){
		printf("steps and cells must be positive\n");
		return 0;
	}

	size_t states_size = settings.cells * N_STATES * sizeof(fp);
	size_t coefficients_size = settings.cells * N_COEFFICIENTS * sizeof(fp);
	fp *states = (fp *) malloc(states_size);
	fp *expected = (fp *) malloc(states_size);
	fp *coefficients = (fp *) malloc(coefficients_size);
	for(k=0; k<settings.cells; k++){
		for(i=0; i<N_STATES; i++)
			expected[i*settings.cells+k] = states[i*settings.cells+k] = 0.1f*(i+1) + 0.001f*(k%17);
		for(i=0; i<N_COEFFICIENTS; i++)
			coefficients[k*N_COEFFICIENTS+i] = 1.0f + 0.1f*i + 0.01f*(k%5);
	}

	fp *d_states, *d_coefficients;
	int *d_diverged, diverged;
	cudaMalloc((void **)&d_states, states_size);
	cudaMalloc((void **)&d_coefficients, coefficients_size);
	cudaMalloc((void **)&d_diverged, sizeof(int));
	cudaMemcpy(d_states, states, states_size, cudaMemcpyHostToDevice);
	cudaMemcpy(d_coefficients, coefficients, coefficients_size, cudaMemcpyHostToDevice);
	cudaMemset(d_diverged, 0, sizeof(int));

	dim3 threads;
	dim3 blocks;
	threads.x = N_THREADS;
	blocks.x = settings.cells/threads.x;
	if(settings.cells % threads.x != 0)
		blocks.x += 1;

	before = clock();
	heun<<<blocks, threads>>>(	settings,
								d_states,
								d_coefficients,
								d_diverged);
	cudaDeviceSynchronize();
	after = clock();
	cudaMemcpy(states, d_states, states_size, cudaMemcpyDeviceToHost);
	cudaMemcpy(&diverged, d_diverged, sizeof(int), cudaMemcpyDeviceToHost);

	double worst = 0;
	for(k=0; k<settings.cells; k++){
		heun_host(settings, k, expected, coefficients + k*N_COEFFICIENTS);
		for(i=0; i<N_STATES; i++)
			worst = fmax(worst, fabs(expected[i*settings.cells+k] - states[i*settings.cells+k]));
	}
	printf("%.6f s, %d diverged, largest difference %g\n", (double)(after-before)/CLOCKS_PER_SEC, diverged, worst);
	printf("%s\n", diverged || worst > 1e-3 ? "FAILED" : "PASSED");

	cudaFree(d_states);
	cudaFree(d_coefficients);
	cudaFree(d_diverged);
	free(states);
	free(expected);
	free(coefficients);
	return 0;
}
