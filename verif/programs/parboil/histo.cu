/* Histogram whose bins saturate at 255; four bins share a word of shared memory. */
#include "bench.h"

#define FULL 255
#define KB 24
#define BINS_PER_BLOCK (KB * 1024)
#define THREADS 512
constexpr int kUnroll = 4;

__global__ void __launch_bounds__(THREADS, 1) count_bins(
    const unsigned *__restrict__ input, unsigned n, unsigned *overflow,
    unsigned *partial, unsigned first_bin)
{
    extern __shared__ unsigned packed[];       // BINS_PER_BLOCK bytes

    for (unsigned i = threadIdx.x; i < BINS_PER_BLOCK / 4; i += blockDim.x)
        packed[i] = 0;
    __syncthreads();

    unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        unsigned bin = input[i] - first_bin;
        if (bin < BINS_PER_BLOCK) {
            unsigned shift = 8u * (bin & 3u);
            unsigned seen = packed[bin >> 2], expected;
            do {
                expected = seen;
                if (((expected >> shift) & 0xffu) == 0xffu) {   // full: the rest is counted outside
                    atomicAdd(&overflow[first_bin + bin], 1u);
                    break;
                }
                seen = atomicCAS(&packed[bin >> 2], expected, expected + (1u << shift));
            } while (seen != expected);
        }
    }
    __syncthreads();

#pragma unroll kUnroll
    for (unsigned i = threadIdx.x; i < BINS_PER_BLOCK; i += blockDim.x) {
        unsigned count = (packed[i >> 2] >> (8u * (i & 3u))) & 0xffu;
        if (count)
            atomicAdd(&partial[first_bin + i], count);
    }
}

__global__ void saturate_bins(const unsigned *partial, const unsigned *overflow, unsigned bins, uchar4 *out)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < bins / 4; i += gridDim.x * blockDim.x) {
        uint4 p = reinterpret_cast<const uint4 *>(partial)[i];
        uint4 o = ((const uint4 *)overflow)[i];
#define SATURATE(v) ((v) > FULL ? FULL : (v))
        out[i] = make_uchar4(SATURATE(p.x + o.x), SATURATE(p.y + o.y), SATURATE(p.z + o.z), SATURATE(p.w + o.w));
#undef SATURATE
    }
}

static unsigned *read_image(const char *name, unsigned *width, unsigned *height)
{
    FILE *f = fopen(name, "rb");
    unsigned header[4];
    if (!f || fread(header, sizeof(unsigned), 2, f) != 2) {
        fputs("cannot open the picture\n", stderr);
        exit(1);
    }
    *width = header[0];
    *height = header[1];
    unsigned *pixels = (unsigned *)malloc(sizeof(unsigned) * *width * *height);
    if (fread(pixels, sizeof(unsigned), *width * *height, f) != *width * *height) {
        fputs("the picture is too short\n", stderr);
        exit(1);
    }
    fclose(f);
    return pixels;
}

int main(int argc, char *argv[])
{
    struct bench_options options = bench_read_options(&argc, argv);
    int repeats = argc >= 2 ? atoi(argv[1]) : 1;
    unsigned width = 256, height = 128, bins = 2 * BINS_PER_BLOCK;
    unsigned *image;

    struct bench_timers timers;
    bench_start(&timers);
    bench_switch(&timers, PHASE_IO);
    if (options.n_inputs > 0)
        image = read_image(options.inputs[0], &width, &height);
    else {
        image = (unsigned *)malloc(sizeof(unsigned) * width * height);
        unsigned s = 1;
        for (unsigned i = 0; i < width * height; i++) {
            s ^= s << 13; s ^= s >> 17; s ^= s << 5;
            image[i] = i % 3 ? s % bins : s % 16;
        }
    }
    unsigned n = width * height;

    bench_switch(&timers, PHASE_COPY);
    unsigned *d_input, *d_overflow, *d_partial;
    uchar4 *d_final;
    cudaMalloc((void **)&d_input, n * sizeof(unsigned));
    cudaMalloc((void **)&d_overflow, bins * sizeof(unsigned));
    cudaMalloc((void **)&d_partial, bins * sizeof(unsigned));
    cudaMalloc((void **)&d_final, bins);
    cudaMemcpy(d_input, image, n * sizeof(unsigned), cudaMemcpyHostToDevice);

    cudaFuncSetAttribute(count_bins, cudaFuncAttributeMaxDynamicSharedMemorySize, BINS_PER_BLOCK);
    CUDA_ERRCK;

    bench_switch(&timers, PHASE_KERNEL);
    for (int iter = 0; iter < repeats; iter++) {
        cudaMemset(d_overflow, 0, bins * sizeof(unsigned));
        cudaMemset(d_partial, 0, bins * sizeof(unsigned));
        for (unsigned first = 0; first < bins; first += BINS_PER_BLOCK)
            count_bins<<<8, THREADS, BINS_PER_BLOCK>>>(d_input, n, d_overflow, d_partial, first);
        saturate_bins<<<14, 256>>>(d_partial, d_overflow, bins, d_final);
    }
    cudaDeviceSynchronize();
    CUDA_ERRCK;

    bench_switch(&timers, PHASE_COPY);
    unsigned char *histo = (unsigned char *)malloc(bins);
    cudaMemcpy(histo, d_final, bins, cudaMemcpyDeviceToHost);

    bench_switch(&timers, PHASE_COMPUTE);
    unsigned char *expected = (unsigned char *)calloc(bins, 1);
    for (unsigned i = 0; i < n; i++)
        if (image[i] < bins && expected[image[i]] < FULL) ++expected[image[i]];
    int same = memcmp(histo, expected, bins) == 0;
    if (options.output) {
        FILE *f = fopen(options.output, "wb");
        if (f) { fwrite(histo, 1, bins, f); fclose(f); }
    }
    bench_print(&timers);
    puts(same ? "match" : "MISMATCH");

    cudaFree(d_input); cudaFree(d_overflow); cudaFree(d_partial); cudaFree(d_final);
    free(image); free(histo); free(expected);
    return !same;
}
