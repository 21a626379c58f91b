/**
 * conv3d.cu: 27-point weighted sum over a volume, a plane per launch
 */
#include <unistd.h>
#include <stdio.h>
#include <time.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include "poly.h"

/* Problem size */
#define NI 24
#define NJ 32
#define NK 40

#define DIM_THREAD_BLOCK_X 32
#define DIM_THREAD_BLOCK_Y 4

#define SIZE (NI * NJ * NK)
#define V(i, j, k) ((i) * (NK * NJ) + (j) * NK + (k))

/* the middle plane weighs twice; { front, middle, back } */
static const int plane_weight[3] = {1, 2, 1};
__device__ const DATA_TYPE weights[9] = {
	+0.2f, +0.5f, -0.8f,
	-0.3f, +0.6f, -0.9f,
	+0.4f, +0.7f, +0.1f
};
static const DATA_TYPE host_weights[9] = { 0.2f, 0.5f, -0.8f, -0.3f, 0.6f, -0.9f, 0.4f, 0.7f, 0.1f };

void conv3D(DATA_TYPE* A, DATA_TYPE* B)
{
	int i, j, k, d, w;

	for (i = 1; i < NI - 1; ++i)
		for (j = 1; j < NJ - 1; ++j)
			for (k = 1; k < NK -1; ++k)
			{
				DATA_TYPE sum = 0;
				for (d = -1; d <= 1; d++)
					for (w = 0; w < 9; w++)
						sum += plane_weight[d + 1] * host_weights[w] * A[V(i + d, j + w / 3 - 1, k + w % 3 - 1)];
				B[V(i, j, k)] = sum;
			}
}

void logf_(const char* format, ...)
{
	va_list list;
	va_start(list, format);
	vfprintf(stdout, format, list);
	va_end(list);
}

__global__ void conv3D_kernel(DATA_TYPE *A, DATA_TYPE *B, int i)
{
	int k = blockIdx.x * blockDim.x + threadIdx.x;
	int j = blockIdx.y * blockDim.y + threadIdx.y;

	if ((i < (NI-1)) && (j < (NJ-1)) &&  (k < (NK-1)) && (i > 0) && (j > 0) && (k > 0))
	{
		DATA_TYPE sum = 0;
		#pragma unroll
		for (int d = -1; d <= 1; d++)
		{
			DATA_TYPE plane = 0;
			#pragma unroll
			for (int w = 0; w < 9; w++)
			{
				plane += weights[w] * A[V(i + d, j + w / 3 - 1, k + w % 3 - 1)];
			}
			sum += (d == 0 ? 2 : 1) * plane;
		}
		B[V(i, j, k)] = sum;
	}
}

void convolutionCuda(DATA_TYPE* A, DATA_TYPE* result)
{
	DATA_TYPE *A_gpu;
	DATA_TYPE *B_gpu;
	double t_start, t_end;

	cudaMalloc((void **)&A_gpu, sizeof(DATA_TYPE) * SIZE);
	cudaMalloc((void **)&B_gpu, sizeof(DATA_TYPE) * SIZE);
	cudaMemcpy(A_gpu, A, sizeof(DATA_TYPE) * SIZE, cudaMemcpyHostToDevice);
	cudaMemset(B_gpu, 0, sizeof(DATA_TYPE) * SIZE);

	dim3 block(DIM_THREAD_BLOCK_X, DIM_THREAD_BLOCK_Y);
	dim3 grid((size_t)(ceil( ((float)NK) / ((float)block.x) )), (size_t)(ceil( ((float)NJ) / ((float)block.y) )));

	t_start = rtclock();
	int i;
	for (i = 1; i < NI - 1; ++i) // 0
	{
		conv3D_kernel<<< grid, block >>>(A_gpu, B_gpu, i);
	}
	cudaDeviceSynchronize();
	t_end = rtclock();
	logf_("GPU Runtime: %0.6lfs (%d launches)\n", t_end - t_start, NI - 2);

	cudaMemcpy(result, B_gpu, sizeof(DATA_TYPE) * SIZE, cudaMemcpyDeviceToHost);
	cudaFree(A_gpu);
	cudaFree(B_gpu);
}

int main(int argc, char *argv[])
{
	DATA_TYPE* A = (DATA_TYPE*)malloc(SIZE*sizeof(DATA_TYPE));
	DATA_TYPE* B = (DATA_TYPE*)calloc(SIZE, sizeof(DATA_TYPE));
	DATA_TYPE* result = (DATA_TYPE*)malloc(SIZE*sizeof(DATA_TYPE));
	int n, fail = 0;

	for (n = 0; n < SIZE; n++)
		A[n] = n % 12 + 2 * (n / NK % 7) + 3 * (n / (NJ * NK) % 5);
	convolutionCuda(A, result);

	clock_t before = clock();
	conv3D(A, B);
	logf_("CPU Runtime: %0.6lfs\n", (double)(clock() - before) / CLOCKS_PER_SEC);
	for (n = 0; n < SIZE; n++)
		if (percent_diff(B[n], result[n]) > PERCENT_DIFF_ERROR_THRESHOLD && fabs(B[n] - result[n]) > 1e-3)
			fail++;

	free(A);
	free(B);
	free(result);
	return report("B", fail);
}
