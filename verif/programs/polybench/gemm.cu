/**
 * gemm.cu: C = alpha*A*B + beta*C
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <assert.h>
#include <unistd.h>
#include <sys/time.h>
#include <cuda.h>

#define GPU_DEVICE 0
#define ERROR_BOUND 0.05   // percent

/* Problem size; -DNI=... overrides */
#ifndef NI
# define NI 128
#endif
#ifndef NJ
# define NJ 96
#endif
#ifndef NK
# define NK 64
#endif

/* Thread block dimensions */
#define DIM_THREAD_BLOCK_X 32
#define DIM_THREAD_BLOCK_Y 8

#define ALPHA 1.5f
#define BETA 1.2f

typedef float DATA_TYPE;

double seconds()
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return t.tv_sec + t.tv_usec * 1.0e-6;
}

void gemm(DATA_TYPE *A, DATA_TYPE *B, DATA_TYPE *C)
{
	int i,j,k;

	for (i = 0; i < NI; i++)
	{
    	for (j = 0; j < NJ; j++)
    	{
			C[i*NJ + j] *= BETA;

			for (k = 0; k < NK; ++k)
			{
	  			C[i*NJ + j] += ALPHA * A[i*NK + k] * B[k*NJ + j];
			}
      	}
	}
}

void fill(DATA_TYPE *A, DATA_TYPE *B, DATA_TYPE *C)
{
	int n;

  	for (n = 0; n < NI*NK; n++) A[n] = (DATA_TYPE) (n % 19) / NI;
  	for (n = 0; n < NK*NJ; n++) B[n] = (DATA_TYPE) (n % 23 + 1) / NJ;
  	for (n = 0; n < NI*NJ; n++) C[n] = (DATA_TYPE) (n % 29 + 2) / NJ;
}

void compare(DATA_TYPE* C, DATA_TYPE* C_outputFromGpu)
{
	int n, fail = 0;

	for (n = 0; n < NI*NJ; n++)
	{
		if (fabs(C[n] - C_outputFromGpu[n]) * 100.0 > ERROR_BOUND * fabs(C[n]))
		{
			fail++;
		}
	}
	printf("Elements that differ by more than %4.2f percent: %d\n", ERROR_BOUND, fail);
}

void chooseDevice()
{
	cudaDeviceProp deviceProp;
	cudaGetDeviceProperties(&deviceProp, GPU_DEVICE);
	printf("device %d is %s\n",GPU_DEVICE,deviceProp.name);
	cudaSetDevice( GPU_DEVICE );
}

__global__ void gemm_kernel(DATA_TYPE *a, DATA_TYPE *b, DATA_TYPE *c)
{
	int j = blockIdx.x * blockDim.x + threadIdx.x;
	int i = blockIdx.y * blockDim.y + threadIdx.y;

	if ((i < NI) && (j < NJ))
	{
		DATA_TYPE sum = BETA * c[i * NJ + j];
		int k;
		for(k=0; k < NK; k++)
		{
			sum += ALPHA * a[i * NK + k] * b[k * NJ +j];
		}
		c[i * NJ + j] = sum;
	}
}

void gemmOnDevice(DATA_TYPE* A, DATA_TYPE* B, DATA_TYPE* C, DATA_TYPE* C_outputFromGpu)
{
	double t_start, t_end;
	DATA_TYPE *A_gpu, *B_gpu, *C_gpu;

	cudaMalloc((void **)&A_gpu, sizeof(DATA_TYPE) * NI * NK);
	cudaMalloc((void **)&B_gpu, sizeof(DATA_TYPE) * NK * NJ);
	cudaMalloc((void **)&C_gpu, sizeof(DATA_TYPE) * NI * NJ);

	cudaMemcpy(A_gpu, A, sizeof(DATA_TYPE) * NI * NK, cudaMemcpyHostToDevice);
	cudaMemcpy(B_gpu, B, sizeof(DATA_TYPE) * NK * NJ, cudaMemcpyHostToDevice);
	cudaMemcpy(C_gpu, C, sizeof(DATA_TYPE) * NI * NJ, cudaMemcpyHostToDevice);

	dim3 block(DIM_THREAD_BLOCK_X, DIM_THREAD_BLOCK_Y);
	dim3 grid((size_t)(ceil( ((float)NJ)/ ((float)block.x) )),(size_t)(ceil( ((float)NI)/ ((float)block.y) )));

	t_start = seconds();
	gemm_kernel<<< grid, block >>>(A_gpu, B_gpu, C_gpu);
	cudaDeviceSynchronize();
	t_end = seconds();
	fprintf(stdout, "GPU Runtime: %0.6lfs\n", t_end - t_start);

	cudaMemcpy(C_outputFromGpu, C_gpu, sizeof(DATA_TYPE) * NI * NJ, cudaMemcpyDeviceToHost);

	cudaFree(A_gpu);
	cudaFree(B_gpu);
	cudaFree(C_gpu);
}

int main(int argc, char *argv[])
{
	double t_start, t_end;
	DATA_TYPE* A = (DATA_TYPE*)malloc(NI*NK*sizeof(DATA_TYPE));
	DATA_TYPE* B = (DATA_TYPE*)malloc(NK*NJ*sizeof(DATA_TYPE));
	DATA_TYPE* C = (DATA_TYPE*)malloc(NI*NJ*sizeof(DATA_TYPE));
	DATA_TYPE* C_outputFromGpu = (DATA_TYPE*)malloc(NI*NJ*sizeof(DATA_TYPE));

	fill(A, B, C);
	chooseDevice();
	gemmOnDevice(A, B, C, C_outputFromGpu);

	t_start = seconds();
	gemm(A, B, C);
	t_end = seconds();
	fprintf(stdout, "CPU Runtime: %0.6lfs\n", t_end - t_start);

	compare(C, C_outputFromGpu);

	free(A);
	free(B);
	free(C);
	free(C_outputFromGpu);
    return 0;
}
