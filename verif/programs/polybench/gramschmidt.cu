/* gramschmidt.cu: QR by modified Gram-Schmidt, three kernels per column */
#include "poly.h"
#include <iostream>

#define M POLY_SIZE(16, 64, 1024)
#define N POLY_SIZE(16, 48, 1024)
#define BLOCK 64

#define CHECK(call) { \
	const cudaError_t error = call; \
	if (error != cudaSuccess) { \
		std::cerr << "Error: " << __FILE__ << ":" << __LINE__ << ", " << cudaGetErrorString(error) << std::endl; \
		exit(1); \
	} \
}

void gramschmidt(DATA_TYPE A[][N], DATA_TYPE R[][N], DATA_TYPE Q[][N])
{
	for (int k = 0; k < N; k++) {
		DATA_TYPE nrm = 0;
		for (int i = 0; i < M; i++) nrm += A[i][k] * A[i][k];
		R[k][k] = sqrt(nrm);
		for (int i = 0; i < M; i++) Q[i][k] = A[i][k] / R[k][k];
		for (int j = k + 1; j < N; j++) {
			R[k][j] = 0;
			for (int i = 0; i < M; i++) R[k][j] += Q[i][k] * A[i][j];
			for (int i = 0; i < M; i++) A[i][j] = A[i][j] - Q[i][k] * R[k][j];
		}
	}
}

/* a single warp adds the squares of column k */
__global__ void gramschmidt_kernel1(const DATA_TYPE *a, DATA_TYPE *r, int k)
{
	DATA_TYPE nrm = 0.0;
	for (int i = threadIdx.x; i < M; i += warpSize)
		nrm += a[i * N + k] * a[i * N + k];
	for (int offset = 16; offset > 0; offset /= 2)
		nrm += __shfl_down_sync(0xffffffff, nrm, offset);
	if (threadIdx.x == 0)
		r[k * N + k] = sqrtf(nrm);
}

__global__ void gramschmidt_kernel2(const DATA_TYPE *a, const DATA_TYPE *r, DATA_TYPE *q, int k)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < M)
		q[i * N + k] = a[i * N + k] / r[k * N + k];
}

__global__ void gramschmidt_kernel3(DATA_TYPE *a, DATA_TYPE *r, const DATA_TYPE *q, int k)
{
	int j = blockIdx.x * blockDim.x + threadIdx.x;
	if ((j > k) && (j < N)) {
		DATA_TYPE sum = 0;
		int i;
		for (i = 0; i < M; i++)
			sum += q[i * N + k] * a[i * N + j];
		for (i = 0; i < M; i++)
			a[i * N + j] -= q[i * N + k] * sum;
		r[k * N + j] = sum;
	}
}

void init_array(DATA_TYPE A[M][N])
{
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			A[i][j] = (DATA_TYPE)((i * j) % 13 + 1 + (i == j ? 20 : 0)) / (i + 1);
}

void gramschmidtCuda(DATA_TYPE (*A)[N], DATA_TYPE (*R)[N], DATA_TYPE (*Q)[N])
{
	DATA_TYPE *A_gpu, *R_gpu, *Q_gpu;
	CHECK(cudaMalloc((void **)&A_gpu, sizeof(DATA_TYPE) * M * N));
	CHECK(cudaMalloc((void **)&R_gpu, sizeof(DATA_TYPE) * N * N));
	CHECK(cudaMalloc((void **)&Q_gpu, sizeof(DATA_TYPE) * M * N));
	CHECK(cudaMemcpy(A_gpu, A, sizeof(DATA_TYPE) * M * N, cudaMemcpyHostToDevice));

	dim3 block(BLOCK);
	dim3 gridKernel1(1), gridKernel2((M + BLOCK - 1) / BLOCK), gridKernel3((N + BLOCK - 1) / BLOCK);
	double t_start = rtclock();
	for (int k = 0; k < N; k++)
	{
		gramschmidt_kernel1<<<gridKernel1, 32>>>(A_gpu, R_gpu, k);
		gramschmidt_kernel2<<<gridKernel2, block>>>(A_gpu, R_gpu, Q_gpu, k);
		gramschmidt_kernel3<<<gridKernel3, block>>>(A_gpu, R_gpu, Q_gpu, k);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	fprintf(stdout, "GPU Runtime: %0.6lfs\n", rtclock() - t_start);
	CHECK(cudaMemcpy(R, R_gpu, sizeof(DATA_TYPE) * N * N, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(Q, Q_gpu, sizeof(DATA_TYPE) * M * N, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(A_gpu)); CHECK(cudaFree(R_gpu)); CHECK(cudaFree(Q_gpu));
}

int main(int argc, char *argv[])
{
	POLY_2D(DATA_TYPE, A, M, N);
	POLY_2D(DATA_TYPE, R, N, N);
	POLY_2D(DATA_TYPE, Q, M, N);
	POLY_2D(DATA_TYPE, R_gpu, N, N);
	POLY_2D(DATA_TYPE, Q_gpu, M, N);

	init_array(A);
	gramschmidtCuda(A, R_gpu, Q_gpu);
	gramschmidt(A, R, Q);

	int fail = 0;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			if (fabs(Q[i][j] - Q_gpu[i][j]) > 0.02) fail++;
	POLY_DEAD_CODE_GUARD(argc, argv)
		for (int i = 0; i < M; i++) fprintf(stderr, DATA_PRINTF_MODIFIER, Q_gpu[i][0]);

	free(A); free(R); free(Q); free(R_gpu); free(Q_gpu);
	return report("Q", fail);
}
