/* Two-point angular correlation: histograms of the angles between points of the sky. */
#include <math.h>
#include <float.h>
#include "bench.h"

#define PER_DECADE 5
#define MIN_ARCMIN 1.0
#define MAX_ARCMIN 10000.0
#define BINS 20          /* log10(MAX_ARCMIN / MIN_ARCMIN) * PER_DECADE */
#define NUM_SLOTS (BINS + 2)
#define BLOCK_SIZE 128
#define WARP_SIZE 32
#define NUM_WARPS (BLOCK_SIZE / WARP_SIZE)
#define RADIANS (M_PI/180.0)

struct cartesian { float x, y, z; };
struct bin_range { int first, last; bool empty() const { return first > last; } };

__constant__ float bounds[BINS + 1];

// the slot of a cosine: bounds fall, so that slot s has edges[s-1] > c >= edges[s]
__device__ int slot_of(float c)
{
    int low = 0, high = BINS + 1;
    while (high > low) {
        int mid = (low + high) >> 1;
        if (c >= bounds[mid])
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

__global__ void angle_histogram(unsigned *histograms, const cartesian *data, const cartesian *random, int n, bool same)
{
    __shared__ cartesian tile[BLOCK_SIZE];
    __shared__ unsigned warp_hists[NUM_WARPS][NUM_SLOTS];
    const int tid = threadIdx.x, warp = tid / WARP_SIZE, lane = tid % WARP_SIZE;

    for (int s = lane; s < NUM_SLOTS; s += WARP_SIZE)
        warp_hists[warp][s] = 0;
    __syncwarp();

    const int i = blockIdx.x * BLOCK_SIZE + tid;
    cartesian me = { 0.f, 0.f, 0.f };
    if (i < n) me = data[i];

    for (int base = same ? blockIdx.x * BLOCK_SIZE : 0; base < n; base += BLOCK_SIZE) {
        __syncthreads();
        if (base + tid < n)
            tile[tid] = random[base + tid];
        __syncthreads();
        if (i < n) {
            int count = min(BLOCK_SIZE, n - base);
            for (int j = 0; j < count; j++) {
                if (same && base + j <= i) continue;
                float dot = me.x * tile[j].x + me.y * tile[j].y + me.z * tile[j].z;
                atomicAdd(&warp_hists[warp][slot_of(dot)], 1u);
            }
        }
    }
    __syncthreads();
    if (tid < NUM_SLOTS) {
        unsigned sum = 0;
        for (int w = 0; w < NUM_WARPS; ++w) sum += warp_hists[w][tid];
        if (sum) atomicAdd(&histograms[tid], sum);
    }
}

void fill_bounds(float *edges)
{
    for (int k = 0; k < BINS + 1; k++)
        edges[k] = (float)cos(pow(10.0, log10(MIN_ARCMIN) + k * 1.0 / PER_DECADE) / 60.0 * RADIANS);
}

int read_points(const char *fname, cartesian *data, int npoints)
{
    FILE *infile = fopen(fname, "r");
    double ra, dec;
    int n = 0;
    if (infile == NULL) {
        fprintf(stderr, "no points in %s\n", fname);
        return 0;
    }
    while (n < npoints && fscanf(infile, "%lf %lf", &ra, &dec) == 2) {
        data[n].x = (float)(cos(RADIANS * ra) * cos(RADIANS * dec));
        data[n].y = (float)(sin(RADIANS * ra) * cos(RADIANS * dec));
        data[n].z = (float)sin(RADIANS * dec);
        n++;
    }
    fclose(infile);
    return n;
}

static void scatter_points(cartesian *p, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 747796405u + 2891336453u;
        double z = (seed >> 8) / 8388608.0 - 1.0;
        seed = seed * 747796405u + 2891336453u;
        double a = (seed >> 8) / 16777216.0 * 2.0 * M_PI, r = sqrt(1 - z * z);
        p[i].x = (float)(r * cos(a)); p[i].y = (float)(r * sin(a)); p[i].z = (float)z;
    }
}

int main(int argc, char **argv)
{
    bench_timers timers;
    bench_start(&timers);
    bench_options options = bench_read_options(&argc, argv);
    int n = argc > 1 ? atoi(argv[1]) : 600;
    size_t bytes = n * sizeof(cartesian);

    cartesian *data = (cartesian *)malloc(bytes), *random = (cartesian *)malloc(bytes);
    bench_switch(&timers, PHASE_IO);
    if (options.n_inputs >= 2) {
        int a = read_points(options.inputs[0], data, n), b = read_points(options.inputs[1], random, n);
        n = a < b ? a : b;
        if (n == 0) exit(1);
    } else {
        scatter_points(data, n, 1);
        scatter_points(random, n, 2);
    }

    bench_switch(&timers, PHASE_COPY);
    float edges[BINS + 1];
    fill_bounds(edges);
    cudaMemcpyToSymbol(bounds, edges, sizeof(edges));
    cartesian *d_data, *d_random;
    unsigned *d_hists;
    cudaMalloc((void **)&d_data, bytes);
    cudaMalloc((void **)&d_random, bytes);
    cudaMalloc((void **)&d_hists, 3 * NUM_SLOTS * sizeof(unsigned));
    cudaMemcpy(d_data, data, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_random, random, bytes, cudaMemcpyHostToDevice);
    cudaMemset(d_hists, 0, 3 * NUM_SLOTS * sizeof(unsigned));

    bench_switch(&timers, PHASE_KERNEL);
    int blocks = (n + BLOCK_SIZE - 1) / BLOCK_SIZE;
    angle_histogram <<< blocks, BLOCK_SIZE >>> (d_hists, d_data, d_data, n, true);
    angle_histogram <<< blocks, BLOCK_SIZE >>> (d_hists + NUM_SLOTS, d_random, d_random, n, true);
    angle_histogram <<< blocks, BLOCK_SIZE >>> (d_hists + 2 * NUM_SLOTS, d_data, d_random, n, false);
    cudaDeviceSynchronize();
    CUDA_ERRCK;

    unsigned h[3][NUM_SLOTS];
    cudaMemcpy(h, d_hists, sizeof h, cudaMemcpyDeviceToHost);
    bench_switch(&timers, PHASE_COMPUTE);
    for (int k = 1; k <= BINS; k++) {
        double dd = h[0][k], rr = h[1][k], dr = h[2][k];
        printf("%2d  %f\n", k, rr > 0 ? (2.0 * dd - 2.0 * dr / 2.0 + rr) / rr : 0.0);
    }
    unsigned long long total[3] = { 0, 0, 0 };
    for (int k = 0; k < 3 * NUM_SLOTS; k++) total[k / NUM_SLOTS] += h[k / NUM_SLOTS][k % NUM_SLOTS];
    unsigned long long own = (unsigned long long)n * (n - 1) / 2;
    bool right = total[0] == own && total[1] == own && total[2] == (unsigned long long)n * n;
    bench_print(&timers);
    printf("%s\n", right ? "every pair was counted once" : "pairs are missing");
    cudaFree(d_data); cudaFree(d_random); cudaFree(d_hists);
    free(data); free(random);
    return right ? 0 : 1;
}
