////////////////////////////////////////////////////////////////////////////////
// Separable filter of a picture: rows, then columns. The weights stand in
// constant memory, which a function with C linkage fills.
////////////////////////////////////////////////////////////////////////////////
#include <assert.h>
#include <math.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#include "sample_common.h"

#define RADIUS 8
#define TAPS (2 * RADIUS + 1)

#define ROW_THREADS_X   16
#define ROW_THREADS_Y   4
#define ROWS_RESULT_STEPS 4
#define ROWS_HALO_STEPS   1
#define COLUMN_THREADS_X   16
#define COLUMN_THREADS_Y   8
#define COLUMNS_RESULT_STEPS 4
#define COLUMNS_HALO_STEPS   1

__constant__ float c_Weights[TAPS];

extern "C" void setWeights(float *h_Weights)
{
    cudaMemcpyToSymbol(c_Weights, h_Weights, TAPS * sizeof(float));
}

__global__ void filterRows(float *dst, const float *src, int w, int h, int pitch)
{
    cg::thread_block cta = cg::this_thread_block();
    __shared__ float line[ROW_THREADS_Y][(ROWS_RESULT_STEPS + 2 * ROWS_HALO_STEPS) * ROW_THREADS_X];

    const int x0 = (int)(blockIdx.x * ROWS_RESULT_STEPS - ROWS_HALO_STEPS) * ROW_THREADS_X + threadIdx.x;
    const int y = blockIdx.y * ROW_THREADS_Y + threadIdx.y;
    float *mine = line[threadIdx.y];

#pragma unroll
    for (int i = 0; i < ROWS_RESULT_STEPS + 2 * ROWS_HALO_STEPS; i++) {
        int x = x0 + i * ROW_THREADS_X;
        mine[threadIdx.x + i * ROW_THREADS_X] = (x >= 0 && x < w && y < h) ? src[y * pitch + x] : 0;
    }
    cg::sync(cta);

#pragma unroll
    for (int i = ROWS_HALO_STEPS; i < ROWS_HALO_STEPS + ROWS_RESULT_STEPS; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++)
            sum += c_Weights[RADIUS - j] * mine[threadIdx.x + i * ROW_THREADS_X + j];
        int x = x0 + i * ROW_THREADS_X;
        if (x < w && y < h) dst[y * pitch + x] = sum;
    }
}

extern "C" void rowsOnDevice(float *d_Dst, float *d_Src, int imageW, int imageH)
{
    assert(ROW_THREADS_X * ROWS_HALO_STEPS >= RADIUS);
    const int span = ROWS_RESULT_STEPS * ROW_THREADS_X;
    dim3 blocks((imageW + span - 1) / span, (imageH + ROW_THREADS_Y - 1) / ROW_THREADS_Y);
    dim3 threads(ROW_THREADS_X, ROW_THREADS_Y);
    filterRows<<<blocks, threads>>>(d_Dst, d_Src, imageW, imageH, imageW);
    getLastCudaError("filterRows<<<>>>() execution failed\n");
}

__global__ void filterColumns(float *dst, const float *src, int w, int h, int pitch)
{
    cg::thread_block cta = cg::this_thread_block();
    __shared__ float column[COLUMN_THREADS_X]
                           [(COLUMNS_RESULT_STEPS + 2 * COLUMNS_HALO_STEPS) * COLUMN_THREADS_Y + 1];

    const int x = blockIdx.x * COLUMN_THREADS_X + threadIdx.x;
    const int y0 = (int)(blockIdx.y * COLUMNS_RESULT_STEPS - COLUMNS_HALO_STEPS) * COLUMN_THREADS_Y + threadIdx.y;

#pragma unroll
    for (int i = 0; i < COLUMNS_RESULT_STEPS + 2 * COLUMNS_HALO_STEPS; i++) {
        int y = y0 + i * COLUMN_THREADS_Y;
        column[threadIdx.x][threadIdx.y + i * COLUMN_THREADS_Y] = (y >= 0 && y < h && x < w) ? src[y * pitch + x] : 0;
    }
    cg::sync(cta);

#pragma unroll
    for (int i = COLUMNS_HALO_STEPS; i < COLUMNS_HALO_STEPS + COLUMNS_RESULT_STEPS; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++)
            sum += c_Weights[RADIUS - j] * column[threadIdx.x][threadIdx.y + i * COLUMN_THREADS_Y + j];
        int y = y0 + i * COLUMN_THREADS_Y;
        if (y < h && x < w) dst[y * pitch + x] = sum;
    }
}

extern "C" void columnsOnDevice(float *d_Dst, float *d_Src, int imageW, int imageH)
{
    assert(COLUMN_THREADS_Y * COLUMNS_HALO_STEPS >= RADIUS);
    const int span = COLUMNS_RESULT_STEPS * COLUMN_THREADS_Y;
    dim3 blocks((imageW + COLUMN_THREADS_X - 1) / COLUMN_THREADS_X, (imageH + span - 1) / span);
    dim3 threads(COLUMN_THREADS_X, COLUMN_THREADS_Y);
    filterColumns<<<blocks, threads>>>(d_Dst, d_Src, imageW, imageH, imageW);
    getLastCudaError("filterColumns<<<>>>() execution failed\n");
}

static void filterCPU(float *dst, const float *src, const float *k, int w, int h, int dx, int dy)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sum = 0;
            for (int j = -RADIUS; j <= RADIUS; j++) {
                int u = x + j * dx, v = y + j * dy;
                if (u >= 0 && v >= 0 && u < w && v < h) sum += src[v * w + u] * k[RADIUS - j];
            }
            dst[y * w + x] = sum;
        }
}

int main(int argc, char **argv)
{
    const int imageW = flag_int(argc, (const char **)argv, "width", 200);
    const int imageH = flag_int(argc, (const char **)argv, "height", 100);
    const int n = imageW * imageH, iterations = 2;
    printf("[%s] - Starting...\n", argv[0]);

    float h_Weights[TAPS];
    float *h_Input = (float *)malloc(n * sizeof(float)), *h_Buffer = (float *)malloc(n * sizeof(float));
    float *h_CPU = (float *)malloc(n * sizeof(float)), *h_GPU = (float *)malloc(n * sizeof(float));
    srand(200);
    for (unsigned int i = 0; i < TAPS; i++) h_Weights[i] = (float)(rand() % 16);
    for (int i = 0; i < n; i++) h_Input[i] = (float)(rand() % 16);

    float *d_Input, *d_Output, *d_Buffer;
    checkCudaErrors(cudaMalloc((void **)&d_Input, n * sizeof(float)));
    checkCudaErrors(cudaMalloc((void **)&d_Output, n * sizeof(float)));
    checkCudaErrors(cudaMalloc((void **)&d_Buffer, n * sizeof(float)));
    setWeights(h_Weights);
    checkCudaErrors(cudaMemcpy(d_Input, h_Input, n * sizeof(float), cudaMemcpyHostToDevice));

    StopWatch timer;
    for (int i = -1; i < iterations; i++) {
        // the first round only warms up
        if (i == 0) {
            checkCudaErrors(cudaDeviceSynchronize());
            timer.reset();
        }
        rowsOnDevice(d_Buffer, d_Input, imageW, imageH);
        columnsOnDevice(d_Output, d_Buffer, imageW, imageH);
    }
    checkCudaErrors(cudaDeviceSynchronize());
    double gpuTime = 0.001 * timer.ms() / (double)iterations;
    printf("Throughput = %.4f MPixels/sec, Time = %.5f s\n", 1.0e-6 * n / gpuTime, gpuTime);

    checkCudaErrors(cudaMemcpy(h_GPU, d_Output, n * sizeof(float), cudaMemcpyDeviceToHost));
    filterCPU(h_Buffer, h_Input, h_Weights, imageW, imageH, 1, 0);
    filterCPU(h_CPU, h_Buffer, h_Weights, imageW, imageH, 0, 1);
    double sum = 0, delta = 0;
    for (int i = 0; i < n; i++) {
        delta += (h_GPU[i] - h_CPU[i]) * (h_GPU[i] - h_CPU[i]);
        sum += h_CPU[i] * h_CPU[i];
    }
    double L2norm = sqrt(delta / sum);
    printf("Relative L2 norm: %E\n%s\n", L2norm, L2norm > 1e-6 ? "Test failed!" : "Test passed");
    cudaFree(d_Input); cudaFree(d_Output); cudaFree(d_Buffer);
    free(h_Input); free(h_Buffer); free(h_CPU); free(h_GPU);
    exit(L2norm > 1e-6 ? EXIT_FAILURE : EXIT_SUCCESS);
}
