/* lu.cu: LU decomposition without pivoting; the smallest steps run in one block */
#include "poly.h"

#define N POLY_SIZE(32, 80, 2048)
#define TAIL 32           /* the last TAIL columns are one launch */

#define ELEM(m, i, j) ((m)[(i) * N + (j)])
#if defined(__CUDACC__) && !defined(NO_LDG)
#define READ(p) __ldg(p)
#else
#define READ(p) (*(p))
#endif

extern "C" {

__global__ void lu_kernel1(DATA_TYPE *A, int k)
{
	int j = blockIdx.x * blockDim.x + threadIdx.x;

	if ((j > k) && (j < N))
	{
		ELEM(A, k, j) = ELEM(A, k, j) / ELEM(A, k, k);
	}
}

__global__ void lu_kernel2(DATA_TYPE *A, int k)
{
	int j = blockIdx.x * blockDim.x + threadIdx.x;
	int i = blockIdx.y * blockDim.y + threadIdx.y;

	if ((i > k) && (j > k) && (i < N) && (j < N))
	{
		ELEM(A, i, j) = ELEM(A, i, j) - ELEM(A, i, k) * ELEM(A, k, j);
	}
}

}

/* one thread per column of the last corner, which stays in shared memory */
extern "C" __global__ void __launch_bounds__(TAIL) lu_tail(DATA_TYPE *A)
{
	__shared__ DATA_TYPE corner[TAIL][TAIL + 1];
	const int first = N - TAIL, j = threadIdx.x;

	for (int i = 0; i < TAIL; i++)
		corner[i][j] = READ(&ELEM(A, first + i, first + j));
	__syncthreads();
	for (int k = 0; k < TAIL - 1; k++)
	{
		DATA_TYPE mine = corner[k][j];
		if (j > k)
			corner[k][j] = mine = mine / corner[k][k];
		__syncthreads();
		for (int i = k + 1; i < TAIL; i++)
			if (j > k)
				corner[i][j] -= corner[i][k] * mine;
		__syncthreads();
	}
	for (int i = 0; i < TAIL; i++)
		ELEM(A, first + i, first + j) = corner[i][j];
}

void lu(DATA_TYPE *A)
{
	for (int k = 0; k < N; k++)
	{
		for (int j = k + 1; j < N; j++)
			ELEM(A, k, j) = ELEM(A, k, j) / ELEM(A, k, k);
		for (int i = k + 1; i < N; i++)
			for (int j = k + 1; j < N; j++)
				ELEM(A, i, j) = ELEM(A, i, j) - ELEM(A, i, k) * ELEM(A, k, j);
	}
}

void luCuda(DATA_TYPE *A, DATA_TYPE *A_outputFromGpu, size_t bytes = sizeof(DATA_TYPE) * N * N)
{
	DATA_TYPE *A_gpu;

	cudaMalloc((void **)&A_gpu, bytes);
	cudaMemcpy(A_gpu, A, bytes, cudaMemcpyHostToDevice);

	dim3 block1(128, 1, 1);
	dim3 block2(32, 8, 1);
	dim3 grid1(1, 1, 1);
	dim3 grid2(1, 1, 1);

	double t_start = rtclock();
	for (int k = 0; k < N - TAIL; k++)
	{
		grid1.x = (unsigned int)(ceil((float)N / (float)block1.x));
		lu_kernel1<<<grid1, block1>>>(A_gpu, k);

		grid2.x = (unsigned int)(ceil((float)N / (float)block2.x));
		grid2.y = (unsigned int)(ceil((float)N / (float)block2.y));
		lu_kernel2<<<grid2, block2>>>(A_gpu, k);
	}
	lu_tail<<<1, TAIL>>>(A_gpu);
	cudaDeviceSynchronize();
	fprintf(stdout, "GPU Runtime: %0.6lfs\n", rtclock() - t_start);
	cudaMemcpy(A_outputFromGpu, A_gpu, bytes, cudaMemcpyDeviceToHost);
	cudaFree(A_gpu);
}

int main(int argc, char **argv)
{
	POLY_1D(DATA_TYPE, A, N * N);
	POLY_1D(DATA_TYPE, result, N * N);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			ELEM(A, i, j) = (DATA_TYPE)((i * 3 + j * 5) % 17 + 1) / 17 + (i == j ? N : 0);
	luCuda(A, result);
	lu(A);
	int fail = 0;
	for (int i = 0; i < N * N; i++)
		if (percent_diff(A[i], result[i]) > PERCENT_DIFF_ERROR_THRESHOLD)
			fail++;
	free(A);
	free(result);
	return report("LU", fail);
}
