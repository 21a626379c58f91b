/* Sums of absolute differences for motion search: 4x4 blocks first, 8x8 and 16x16 from them. */
#include "bench.h"

#define REACH 8
#define SPAN (2 * REACH + 1)
#define POSITIONS (SPAN * SPAN)

typedef unsigned short sad_t;

/* one displacement, packed as the encoder wants it */
struct motion {
    unsigned cost : 16;
    int dx : 8;
    int dy : 8;
};

struct picture { int width, height; short *data; };

__device__ static inline int clamp_to(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

extern "C" __global__ void sad_4x4(sad_t *sads, const short *frame, const short *ref, int width, int height)
{
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int x0 = blockIdx.x * 4, y0 = blockIdx.y * 4;
    __shared__ short current[16];
    if (threadIdx.x < 16)
        current[threadIdx.x] = frame[(y0 + threadIdx.x / 4) * width + x0 + threadIdx.x % 4];
    __syncthreads();

    for (int pos = threadIdx.x; pos < POSITIONS; pos += blockDim.x) {
        int dx = pos % SPAN - REACH;
        int dy = pos / SPAN - REACH;
        unsigned sum = 0;
        for (int i = 0; i < 16; i++) {
            int x = clamp_to(x0 + (i & 3) + dx, width - 1), y = clamp_to(y0 + (i >> 2) + dy, height - 1);
            sum = __sad(current[i], ref[y * width + x], sum);
        }
        sads[block * POSITIONS + pos] = (sad_t)sum;
    }
}

/* four quarters of the level below; two positions at once where a word is aligned */
extern "C" __global__ void sad_merge(const sad_t *small, sad_t *large, int small_across)
{
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    const sad_t *q0 = small + (2 * blockIdx.y * small_across + 2 * blockIdx.x) * POSITIONS;
    const sad_t *q1 = q0 + POSITIONS, *q2 = q0 + small_across * POSITIONS, *q3 = q2 + POSITIONS;
    for (int pos = threadIdx.x; pos < POSITIONS; pos += blockDim.x)
        large[block * POSITIONS + pos] = q0[pos] + q1[pos] + q2[pos] + q3[pos];
}

__global__ void best_motion(const sad_t *sads, motion *out)
{
    __shared__ unsigned best;
    if (threadIdx.x == 0) best = 0xffffffffu;
    __syncthreads();
    for (int pos = threadIdx.x; pos < POSITIONS; pos += blockDim.x)
        atomicMin(&best, (unsigned)sads[blockIdx.x * POSITIONS + pos] << 16 | pos);
    __syncthreads();
    if (threadIdx.x == 0) {
        motion m;
        m.cost = best >> 16;
        m.dx = (int)(best & 0xffff) % SPAN - REACH;
        m.dy = (int)(best & 0xffff) / SPAN - REACH;
        out[blockIdx.x] = m;
    }
}

static struct picture *load_image(const char *filename)
{
    FILE *infile = fopen(filename, "rb");
    unsigned char head[4];
    if (!infile || fread(head, 1, 4, infile) != 4) {
        fprintf(stderr, "%s: no picture\n", filename);
        exit(-1);
    }
    struct picture *img = (struct picture *)malloc(sizeof *img);
    img->width = head[0] | head[1] << 8;
    img->height = head[2] | head[3] << 8;
    img->data = (short *)malloc(img->width * img->height * sizeof(short));
    for (int i = 0; i < img->width * img->height; i++)
        img->data[i] = fgetc(infile);
    fclose(infile);
    return img;
}

static struct picture *draw_image(int width, int height, int shift)
{
    struct picture *img = (struct picture *)malloc(sizeof *img);
    *img = { width, height, (short *)malloc(width * height * sizeof(short)) };
    for (int i = 0; i < width * height; i++) {
        int x = i % width + shift, y = i / width;
        img->data[i] = (x * x * 3 + y * 7 * x + y * y) % 251;
    }
    return img;
}

int main(int argc, char **argv)
{
    struct bench_timers timers;
    bench_start(&timers);
    struct bench_options options = bench_read_options(&argc, argv);

    bench_switch(&timers, PHASE_IO);
    struct picture *ref, *cur;
    if (options.n_inputs == 2) {
        ref = load_image(options.inputs[0]);
        cur = load_image(options.inputs[1]);
    } else if (options.n_inputs == 0) {
        ref = draw_image(64, 48, 0);
        cur = draw_image(64, 48, 3);
    } else {
        fprintf(stderr, "two pictures, or none\n");
        exit(-1);
    }
    if (ref->width != cur->width || ref->height != cur->height || (ref->width % 16) || (ref->height % 16)) {
        fprintf(stderr, "pictures must have one size, in multiples of 16\n");
        exit(-1);
    }
    int width = ref->width, height = ref->height, pixels = width * height;
    dim3 by4(width / 4, height / 4), by8(width / 8, height / 8), by16(width / 16, height / 16);

    bench_switch(&timers, PHASE_COPY);
    short *d_cur, *d_ref;
    sad_t *d_sads[3];
    motion *d_motion;
    cudaMalloc(&d_cur, pixels * sizeof(short));
    cudaMalloc(&d_ref, pixels * sizeof(short));
    for (int level = 0; level < 3; level++)
        cudaMalloc(&d_sads[level], (pixels >> (4 + 2 * level)) * POSITIONS * sizeof(sad_t));
    cudaMalloc((void **)&d_motion, by16.x * by16.y * sizeof(motion));
    cudaMemcpy(d_cur, cur->data, pixels * sizeof(short), cudaMemcpyHostToDevice);
    cudaMemcpy(d_ref, ref->data, pixels * sizeof(short), cudaMemcpyHostToDevice);
    CUDA_ERRCK;

    bench_switch(&timers, PHASE_KERNEL);
    sad_4x4<<<by4, 96>>>(d_sads[0], d_cur, d_ref, width, height);
    sad_merge<<<by8, 128>>>(d_sads[0], d_sads[1], by4.x);
    sad_merge<<<by16, 128>>>(d_sads[1], d_sads[2], by8.x);
    best_motion<<<by16.x * by16.y, 64>>>(d_sads[2], d_motion);
    cudaDeviceSynchronize();
    CUDA_ERRCK;

    bench_switch(&timers, PHASE_COMPUTE);
    int n = by16.x * by16.y, wrong = 0;
    motion *found = new motion[n];
    cudaMemcpy(found, d_motion, n * sizeof(motion), cudaMemcpyDeviceToHost);
    for (int b = 0; b < n; b++) {
        int x0 = b % by16.x * 16, y0 = b / by16.x * 16, sum = 0;
        for (int i = 0; i < 256; i++) {
            int x = x0 + i % 16, y = y0 + i / 16;
            int rx = x + found[b].dx, ry = y + found[b].dy;
            rx = rx < 0 ? 0 : rx >= width ? width - 1 : rx;
            ry = ry < 0 ? 0 : ry >= height ? height - 1 : ry;
            sum += abs(cur->data[y * width + x] - ref->data[ry * width + rx]);
        }
        wrong += sum != (int)found[b].cost;
        printf("%d: (%d, %d) costs %u\n", b, (int)found[b].dx, (int)found[b].dy, (unsigned)found[b].cost);
    }
    bench_print(&timers);
    printf("%s\n", wrong ? "Mismatch" : "Pass");
    cudaFree(d_cur); cudaFree(d_ref); cudaFree(d_motion);
    for (auto p : d_sads) cudaFree(p);
    free(ref->data); free(cur->data); free(ref); free(cur);
    delete[] found;
    return wrong;
}
