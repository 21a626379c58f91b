/* 7-point stencil over a box, with two kernels to choose from at compile time. */
#include "bench.h"

#define POINT(_nx,_ny,_i,_j,_k) ((_i)+(_nx)*((_j)+(_ny)*(_k)))

#ifdef NAIVE

__global__ void sweep(float c0, float c1, const float *now, float *next, int nx, int ny, int nz)
{
    int i = threadIdx.x + 1, j = blockIdx.x + 1, k = blockIdx.y + 1;
    for (; i < nx - 1; i += blockDim.x)
        next[POINT(nx, ny, i, j, k)] =
            (now[POINT(nx, ny, i, j, k + 1)] + now[POINT(nx, ny, i, j, k - 1)] +
             now[POINT(nx, ny, i, j + 1, k)] + now[POINT(nx, ny, i, j - 1, k)] +
             now[POINT(nx, ny, i + 1, j, k)] + now[POINT(nx, ny, i - 1, j, k)]) * c1
            - now[POINT(nx, ny, i, j, k)] * c0;
}

#define LAUNCH(...) sweep<<<dim3(ny - 2, nz - 2), 64>>>(__VA_ARGS__)

#else /* two columns of the box per thread, the plane in shared memory */

extern __shared__ float plane[];

__global__ void sweep(float c0, float c1, const float *__restrict__ now, float *__restrict__ next, int nx, int ny, int nz)
{
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int pitch = 2 * blockDim.x;
    const int j = blockIdx.y * blockDim.y + ty;
    int i[2] = { (int)(blockIdx.x * pitch) + tx, (int)(blockIdx.x * pitch + blockDim.x) + tx };
    float bottom[2], current[2], top[2];
    bool exists[2], moves[2];

    for (int s = 0; s < 2; s++) {
        exists[s] = i[s] < nx && j < ny;
        moves[s] = i[s] > 0 && j > 0 && i[s] < nx - 1 && j < ny - 1;
        bottom[s] = exists[s] ? now[POINT(nx, ny, i[s], j, 0)] : 0.f;
        current[s] = exists[s] ? now[POINT(nx, ny, i[s], j, 1)] : 0.f;
    }
    for (int k = 1; k < nz - 1; k++) {
        __syncthreads();
        for (int s = 0; s < 2; s++)
            plane[ty * pitch + tx + s * blockDim.x] = current[s];
        __syncthreads();
        for (int s = 0; s < 2; s++) {
            if (!exists[s]) continue;
            top[s] = now[POINT(nx, ny, i[s], j, k + 1)];
            if (moves[s]) {
                const int x = tx + s * blockDim.x;
                float w = x > 0         ? plane[ty * pitch + x - 1] : now[POINT(nx, ny, i[s] - 1, j, k)];
                float e = x < pitch - 1 ? plane[ty * pitch + x + 1] : now[POINT(nx, ny, i[s] + 1, j, k)];
                float n = ty > 0 ? plane[(ty - 1) * pitch + x] : now[POINT(nx, ny, i[s], j - 1, k)];
                float q = ty < blockDim.y - 1 ? plane[(ty + 1) * pitch + x] : now[POINT(nx, ny, i[s], j + 1, k)];
                next[POINT(nx, ny, i[s], j, k)] = (top[s] + bottom[s] + n + q + w + e) * c1 - current[s] * c0;
            }
            bottom[s] = current[s];
            current[s] = top[s];
        }
    }
}

#define LAUNCH(...)                                                                        \
    sweep<<<dim3((nx + 63) / 64, (ny + 3) / 4), dim3(32, 4), 64 * 4 * sizeof(float)>>>(    \
        __VA_ARGS__)

#endif

static void host_sweep(float c0, float c1, const float *now, float *next, int nx, int ny, int nz)
{
    for (int k = 1; k < nz - 1; k++)
        for (int j = 1; j < ny - 1; j++)
            for (int i = 1; i < nx - 1; i++) {
                const float *p = now + POINT(nx, ny, i, j, k);
                next[POINT(nx, ny, i, j, k)] =
                    (p[nx * ny] + p[-nx * ny] + p[nx] + p[-nx] + p[1] + p[-1]) * c1 - p[0] * c0;
            }
}

static int read_data(float *now, int n, FILE *fp)
{
    return fread(now, sizeof(float), n, fp) == (size_t)n;
}

int main(int argc, char **argv)
{
    struct bench_timers timers;
    bench_start(&timers);
    struct bench_options options = bench_read_options(&argc, argv);
    if (argc < 5) {
        printf("Usage: stencil nx ny nz t [-i <file of floats>]\n"
               "nx: points along x\n"
               "ny: points along y\n"
               "nz: points along z\n"
               "t: the number of sweeps\n");
        return -1;
    }
    int nx = atoi(argv[1]), ny = atoi(argv[2]), nz = atoi(argv[3]), sweeps = atoi(argv[4]);
    if (nx < 3 || ny < 3 || nz < 3 || sweeps < 1) return -1;
    float c0 = 1.0f / 6.0f, c1 = 1.0f / 6.0f / 6.0f;
    int size = nx * ny * nz;

    bench_switch(&timers, PHASE_IO);
    float *field = (float *)malloc(sizeof(float) * size), *scratch = (float *)malloc(sizeof(float) * size);
    if (options.n_inputs) {
        FILE *fp = fopen(options.inputs[0], "rb");
        if (fp == NULL || !read_data(field, size, fp)) {
            fprintf(stderr, "cannot read %s\n", options.inputs[0]);
            exit(1);
        }
        fclose(fp);
    } else {
        for (int i = 0; i < size; i++) field[i] = (i * 37 % 101) * 0.01f;
    }
    memcpy(scratch, field, sizeof(float) * size);

    bench_switch(&timers, PHASE_COPY);
    float *d_now, *d_next;
    cudaMalloc((void **)&d_now, size * sizeof(float));
    cudaMalloc((void **)&d_next, size * sizeof(float));
    cudaMemcpy(d_now, field, size * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_next, d_now, size * sizeof(float), cudaMemcpyDeviceToDevice);

    bench_switch(&timers, PHASE_KERNEL);
    for (int t = 0; t < sweeps; t++) {
        LAUNCH(c0, c1, d_now, d_next, nx, ny, nz);
        float *d_temp = d_now;
        d_now = d_next;
        d_next = d_temp;
    }
    CUDA_ERRCK;
    cudaDeviceSynchronize();

    bench_switch(&timers, PHASE_COPY);
    float *result = (float *)malloc(size * sizeof(float));
    cudaMemcpy(result, d_now, size * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(d_now);
    cudaFree(d_next);

    bench_switch(&timers, PHASE_COMPUTE);
    for (int t = 0; t < sweeps; t++) {
        host_sweep(c0, c1, field, scratch, nx, ny, nz);
        float *temp = field; field = scratch; scratch = temp;
    }
    int bad = 0;
    for (int i = 0; i < size; i++)
        bad += !(result[i] - field[i] < 1e-4f && field[i] - result[i] < 1e-4f);
    bench_print(&timers);
    printf("%d of %d points differ\n", bad, size);
    free(field); free(scratch); free(result);
    return bad != 0;
}
