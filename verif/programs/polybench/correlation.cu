/* correlation.cu: mean, deviation, normalisation and product, in double precision */
#define DATA_TYPE double
#define DATA_PRINTF_MODIFIER "%lf "
#include "poly.h"

#define M POLY_SIZE(16, 48, 2048)   /* variables */
#define N POLY_SIZE(32, 80, 2048)   /* observations */
#define EPS 0.005
#define FLOAT_N ((DATA_TYPE)N)

enum { ROW_THREADS = 64, TILE = 16 };

__global__ void mean_kernel(DATA_TYPE *mean, const DATA_TYPE *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < M)
    {
        mean[j] = 0.0;
        for (int i = 0; i < N; i++)
            mean[j] += data[i * M + j];
        mean[j] /= FLOAT_N;
    }
}

__global__ void std_kernel(const DATA_TYPE *mean, DATA_TYPE *stddev, const DATA_TYPE *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < M)
    {
        DATA_TYPE sum = 0.0;
        for (int i = 0; i < N; i++)
        {
            DATA_TYPE d = data[i * M + j] - mean[j];
            sum += d * d;
        }
        sum = sqrt(sum / FLOAT_N);
        stddev[j] = sum <= EPS ? 1.0 : sum;
    }
}

__global__ void reduce_kernel(const DATA_TYPE *mean, const DATA_TYPE *stddev, DATA_TYPE *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < N && j < M)
        data[i * M + j] = (data[i * M + j] - mean[j]) / (sqrt(FLOAT_N) * stddev[j]);
}

/* upper tiles only; the lower ones are their mirror */
__global__ void corr_kernel(DATA_TYPE *symmat, const DATA_TYPE *data)
{
    __shared__ DATA_TYPE left[TILE][TILE + 1], right[TILE][TILE + 1];

    if (blockIdx.x < blockIdx.y)
        return;
    int j1 = blockIdx.y * TILE + threadIdx.y, j2 = blockIdx.x * TILE + threadIdx.x;
    DATA_TYPE sum = 0.0;
    for (int base = 0; base < N; base += TILE)
    {
        int i = base + threadIdx.y, a = blockIdx.y * TILE + threadIdx.x;
        left[threadIdx.y][threadIdx.x] = i < N && a < M ? data[i * M + a] : 0.0;
        right[threadIdx.y][threadIdx.x] = i < N && j2 < M ? data[i * M + j2] : 0.0;
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TILE; k++)
            sum += left[k][threadIdx.y] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (j1 < M && j2 < M)
    {
        if (j1 == j2)
            sum = 1.0;
        symmat[j1 * M + j2] = sum;
        symmat[j2 * M + j1] = sum;
    }
}

static void correlation(DATA_TYPE data[N][M], DATA_TYPE symmat[M][M])
{
    DATA_TYPE mean[M], stddev[M];
    for (int j = 0; j < M; j++)
    {
        mean[j] = stddev[j] = 0;
        for (int i = 0; i < N; i++) mean[j] += data[i][j] / N;
        for (int i = 0; i < N; i++) stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
        stddev[j] = sqrt(stddev[j] / N);
        if (stddev[j] <= EPS) stddev[j] = 1.0;
    }
    for (int j1 = 0; j1 < M; j1++)
        for (int j2 = 0; j2 < M; j2++)
        {
            DATA_TYPE sum = 0;
            for (int i = 0; i < N; i++)
                sum += (data[i][j1] - mean[j1]) / stddev[j1] * ((data[i][j2] - mean[j2]) / stddev[j2]);
            symmat[j1][j2] = j1 == j2 ? 1.0 : sum / N;
        }
}

int main(int argc, char **argv)
{
    POLY_2D(DATA_TYPE, data, N, M);
    POLY_2D(DATA_TYPE, symmat, M, M);
    POLY_2D(DATA_TYPE, result, M, M);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            data[i][j] = (DATA_TYPE)((i * (j + 3)) % 29) / M + i * 0.01;

    DATA_TYPE *data_gpu, *mean_gpu, *stddev_gpu, *symmat_gpu;
    cudaMalloc((void **)&data_gpu, sizeof(DATA_TYPE) * N * M);
    cudaMalloc((void **)&mean_gpu, sizeof(DATA_TYPE) * M);
    cudaMalloc((void **)&stddev_gpu, sizeof(DATA_TYPE) * M);
    cudaMalloc((void **)&symmat_gpu, sizeof(DATA_TYPE) * M * M);
    cudaMemcpy(data_gpu, data, sizeof(DATA_TYPE) * N * M, cudaMemcpyHostToDevice);

    dim3 tile(TILE, TILE), tiles((M + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    dim3 by_row((M + TILE - 1) / TILE, (N + TILE - 1) / TILE);
    int columns = (M + ROW_THREADS - 1) / ROW_THREADS;

    cudaEvent_t start, stop;
    float ms = 0;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventRecord(start);
    mean_kernel<<<columns, ROW_THREADS>>>(mean_gpu, data_gpu);
    std_kernel<<<columns, ROW_THREADS>>>(mean_gpu, stddev_gpu, data_gpu);
    reduce_kernel<<<by_row, tile>>>(mean_gpu, stddev_gpu, data_gpu);
    corr_kernel<<<tiles, tile>>>(symmat_gpu, data_gpu);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&ms, start, stop);
    printf("GPU Runtime: %0.6fs\n", ms * 1e-3);

    cudaMemcpy(result, symmat_gpu, sizeof(DATA_TYPE) * M * M, cudaMemcpyDeviceToHost);
    correlation(data, symmat);
    int fail = 0;
    for (int i = 0; i < M * M; i++)
        fail += percent_diff(symmat[i / M][i % M], result[i / M][i % M]) > PERCENT_DIFF_ERROR_THRESHOLD;

    cudaFree(data_gpu); cudaFree(mean_gpu); cudaFree(stddev_gpu); cudaFree(symmat_gpu);
    free(data); free(symmat); free(result);
    return report("correlations", fail);
}
