#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define LOG_BUCKETS 6
#define BUCKETS     (1 << LOG_BUCKETS)
#define BUCKET_MASK (BUCKETS - 1)
#define GROUP       128
#define CAPACITY    512       /* of the shared array in which a bucket is sorted */
#define DIVIDE(a, b) (((a) % (b) != 0) ? ((a) / (b) + 1) : ((a) / (b)))

#ifndef HISTOGRAM_IN_SHARED
# define HISTOGRAM_IN_SHARED 1
#endif

#if HISTOGRAM_IN_SHARED
__global__ void histogram(const float *keys, unsigned *counts, float low, float scale, int n)
{
    __shared__ unsigned mine[BUCKETS];
    if (threadIdx.x < BUCKETS) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * GROUP + threadIdx.x; i < n; i += GROUP * gridDim.x)
        atomicAdd(&mine[(int)((keys[i] - low) * scale) & BUCKET_MASK], 1u);
    __syncthreads();
    if (threadIdx.x < BUCKETS) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
#else
__global__ void histogram(const float *keys, unsigned *counts, float low, float scale, int n)
{
    for (int i = blockIdx.x * GROUP + threadIdx.x; i < n; i += GROUP * gridDim.x)
        atomicAdd(counts + ((int)((keys[i] - low) * scale) & BUCKET_MASK), 1u);
}
#endif

__global__ void scatter(const float *keys, float *out, unsigned *cursor, float low, float scale, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float key = keys[i];
        int b = (int)((key - low) * scale) & BUCKET_MASK;
        out[atomicAdd(&cursor[b], 1u)] = key;
    }
}

/* Odd-even merge network over the bucket, padded by infinity. */
__global__ void sort_buckets(float *keys, const unsigned *offsets, int *overflow)
{
    __shared__ float s[CAPACITY];
    unsigned first = offsets[blockIdx.x], count = offsets[blockIdx.x + 1] - first;
    if (count > CAPACITY) {
        if (threadIdx.x == 0) {
            printf("bucket %d holds %u keys\n", blockIdx.x, count);
            *overflow = 1;
        }
        return;
    }
    for (int i = threadIdx.x; i < CAPACITY; i += blockDim.x)
        s[i] = i < count ? keys[first + i] : FLT_MAX;
    for (int p = 1; p < CAPACITY; p <<= 1)
        for (int k = p; k > 0; k >>= 1) {
            __syncthreads();
            for (int t = threadIdx.x; t < CAPACITY; t += blockDim.x) {
                int start = k % p;
                if (t >= start && (t - start) % (2 * k) < k && t + k < CAPACITY
                    && t / (2 * p) == (t + k) / (2 * p)) {
                    float a = s[t], b = s[t + k];
                    assert(a == a && b == b);
                    s[t] = fminf(a, b);
                    s[t + k] = fmaxf(a, b);
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        keys[first + i] = s[i];
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int n = 0;
    float *keys;
    if (argc != 2) {
        printf("Usage: %s <number of keys | file of keys>\n", argv[0]);
        return 0;
    }
    if (strspn(argv[1], "0123456789") == strlen(argv[1])) {
        n = atoi(argv[1]);
        keys = (float *)malloc(n * sizeof(float));
        srand(17);
        for (int i = 0; i < n; i++) keys[i] = rand() / (float)RAND_MAX;
    } else {
        FILE *f = fopen(argv[1], "r");
        if (!f) { perror(argv[1]); return 1; }
        float v;
        while (fscanf(f, "%f", &v) == 1) n++;
        rewind(f);
        keys = (float *)malloc(n * sizeof(float));
        for (int i = 0; i < n; i++)
            if (fscanf(f, "%f", &keys[i]) != 1) break;
        fclose(f);
    }
    if (n == 0) { puts("nothing to sort"); return 1; }

    float low = *std::min_element(keys, keys + n), high = *std::max_element(keys, keys + n);
    float scale = BUCKETS * 0.9999f / (high > low ? high - low : 1.0f);

    float *d_keys, *d_sorted;
    unsigned *d_counts, *d_offsets, *d_cursor;
    int *d_overflow, overflow = 0;
    cudaMalloc((void **)&d_keys, n * sizeof(float));
    cudaMalloc((void **)&d_sorted, n * sizeof(float));
    cudaMalloc((void **)&d_counts, BUCKETS * sizeof(unsigned));
    cudaMalloc((void **)&d_offsets, (BUCKETS + 1) * sizeof(unsigned));
    cudaMalloc((void **)&d_cursor, (BUCKETS + 1) * sizeof(unsigned));
    cudaMalloc((void **)&d_overflow, sizeof(int));
    cudaMemcpy(d_keys, keys, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(d_counts, 0, BUCKETS * sizeof(unsigned));
    cudaMemset(d_overflow, 0, sizeof(int));

    clock_t begin = clock();
    histogram<<<std::min(64, DIVIDE(n, GROUP)), GROUP>>>(d_keys, d_counts, low, scale, n);
    unsigned counts[BUCKETS], offsets[BUCKETS + 1] = {0};
    cudaMemcpy(counts, d_counts, sizeof counts, cudaMemcpyDeviceToHost);
    for (int b = 0; b < BUCKETS; b++) offsets[b + 1] = offsets[b] + counts[b];
    cudaMemcpy(d_offsets, offsets, sizeof offsets, cudaMemcpyHostToDevice);
    cudaMemcpy(d_cursor, offsets, sizeof offsets, cudaMemcpyHostToDevice);
    scatter<<<DIVIDE(n, GROUP), GROUP>>>(d_keys, d_sorted, d_cursor, low, scale, n);
    sort_buckets<<<BUCKETS, GROUP>>>(d_sorted, d_offsets, d_overflow);
    cudaMemcpy(&overflow, d_overflow, sizeof(int), cudaMemcpyDeviceToHost);
    printf("GPU: %.3f ms\n", 1e3 * (clock() - begin) / CLOCKS_PER_SEC);

    float *sorted = (float *)malloc(n * sizeof(float));
    cudaMemcpy(sorted, d_sorted, n * sizeof(float), cudaMemcpyDeviceToHost);
    qsort(keys, n, sizeof(float), compare);
    bool same = !overflow && memcmp(keys, sorted, n * sizeof(float)) == 0;
    printf(same ? "PASSED\n" : "FAILED\n");

    cudaFree(d_keys); cudaFree(d_sorted); cudaFree(d_counts);
    cudaFree(d_offsets); cudaFree(d_cursor); cudaFree(d_overflow);
    free(keys); free(sorted);
    return same ? 0 : 1;
}
