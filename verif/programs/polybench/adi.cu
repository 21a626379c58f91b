/* adi.cu: alternating directions, a tridiagonal solve along rows, then along columns */
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef N
#define N 64
#endif
#ifndef TSTEPS
#define TSTEPS 4
#endif
#define ROWS 0
#define COLUMNS 1

typedef double DATA_TYPE;

/* global arrays, as the generated code has them */
DATA_TYPE X[N][N], A[N][N], B[N][N];
DATA_TYPE X_dev[N][N], B_dev[N][N];

static void init_arrays(void)
{
    int i, j;
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
            X[i][j] = ((DATA_TYPE) i * (j + 1) + 1) / N;
            A[i][j] = ((DATA_TYPE) ((i - 1) * (j + 4)) + 2) / (4.0 * N * N);
            B[i][j] = ((DATA_TYPE) ((i + 3) * (j + 7)) + 3) / N + 2;
        }
}

/* element k of line l, along either direction */
template <int DIRECTION> __host__ __device__ constexpr int at(int l, int k)
{
    return DIRECTION == ROWS ? l * N + k : k * N + l;
}

template <int DIRECTION>
__global__ void forward(const DATA_TYPE *a, DATA_TYPE *b, DATA_TYPE *x)
{
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l >= N) return;
    for (int k = 1; k < N; k++) {
        const int here = at<DIRECTION>(l, k), before = at<DIRECTION>(l, k - 1);
        x[here] = x[here] - x[before] * a[here] / b[before];
        b[here] = b[here] - a[here] * a[here] / b[before];
    }
}

template <int DIRECTION>
__global__ void last(const DATA_TYPE *b, DATA_TYPE *x)
{
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l < N) x[at<DIRECTION>(l, N - 1)] /= b[at<DIRECTION>(l, N - 1)];
}

template <int DIRECTION>
__global__ void backward(const DATA_TYPE *a, const DATA_TYPE *b, DATA_TYPE *x)
{
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l >= N) return;
    for (int k = N - 2; k >= 0; k--)
        x[at<DIRECTION>(l, k)] = (x[at<DIRECTION>(l, k)] - x[at<DIRECTION>(l, k + 1)] * a[at<DIRECTION>(l, k + 1)])
                               / b[at<DIRECTION>(l, k)];
}

#define SOLVE(direction)                                                          \
    forward<direction><<<(N + 31) / 32, 32>>>(d_A, d_B, d_X);                     \
    last<direction><<<(N + 31) / 32, 32>>>(d_B, d_X);                             \
    backward<direction><<<(N + 31) / 32, 32>>>(d_A, d_B, d_X)

template <int DIRECTION> void solve_host(DATA_TYPE *x, const DATA_TYPE *a, DATA_TYPE *b)
{
    for (int l = 0; l < N; l++) {
        int k;
        for (k = 1; k < N; k++) {
            x[at<DIRECTION>(l, k)] -= x[at<DIRECTION>(l, k - 1)] * a[at<DIRECTION>(l, k)] / b[at<DIRECTION>(l, k - 1)];
            b[at<DIRECTION>(l, k)] -= a[at<DIRECTION>(l, k)] * a[at<DIRECTION>(l, k)] / b[at<DIRECTION>(l, k - 1)];
        }
        x[at<DIRECTION>(l, N - 1)] /= b[at<DIRECTION>(l, N - 1)];
        for (k = N - 2; k >= 0; k--)
            x[at<DIRECTION>(l, k)] = (x[at<DIRECTION>(l, k)] - x[at<DIRECTION>(l, k + 1)] * a[at<DIRECTION>(l, k + 1)])
                                   / b[at<DIRECTION>(l, k)];
    }
}

int main(void)
{
    DATA_TYPE *d_A, *d_B, *d_X;
    const size_t size = sizeof X;
    clock_t start;
    int t, i, fail = 0;

    init_arrays();
    cudaMalloc((void **) &d_A, size);
    cudaMalloc((void **) &d_B, size);
    cudaMalloc((void **) &d_X, size);
    cudaMemcpy(d_A, A, size, cudaMemcpyHostToDevice);
    cudaMemcpy(d_B, &B[0][0], size, cudaMemcpyHostToDevice);
    cudaMemcpy(d_X, &X[0][0], size, cudaMemcpyHostToDevice);

    start = clock();
    for (t = 0; t < TSTEPS; t++) {
        SOLVE(ROWS);
        SOLVE(COLUMNS);
    }
    cudaDeviceSynchronize();
    printf("GPU: %f s\n", (double) (clock() - start) / CLOCKS_PER_SEC);
    cudaMemcpy(X_dev, d_X, size, cudaMemcpyDeviceToHost);
    cudaMemcpy(B_dev, d_B, size, cudaMemcpyDeviceToHost);

    for (t = 0; t < TSTEPS; t++) {
        solve_host<ROWS>(&X[0][0], &A[0][0], &B[0][0]);
        solve_host<COLUMNS>(&X[0][0], &A[0][0], &B[0][0]);
    }
    for (i = 0; i < N * N; i++) {
        if (fabs(X[i / N][i % N] - X_dev[i / N][i % N]) > 1e-6 * (1 + fabs(X[i / N][i % N]))) fail++;
        if (fabs(B[i / N][i % N] - B_dev[i / N][i % N]) > 1e-6 * (1 + fabs(B[i / N][i % N]))) fail++;
    }
    printf("%d values differ\n", fail);
    cudaFree(d_A);
    cudaFree(d_B);
    cudaFree(d_X);
    return fail ? 1 : 0;
}
