/* Lattice-Boltzmann flow (two dimensions, nine directions) round an obstacle; most of the code is macros. */
#include <math.h>
#include "bench.h"

#define SIZE_X (64)
#define SIZE_Y (32)
#define PADDED_X (SIZE_X + 32)
#define N_CELLS (PADDED_X * (SIZE_Y + 2))
#define MARGIN (PADDED_X)
#define OMEGA (1.2f)

typedef enum { C = 0, N, S, E, W, NE, NW, SE, SW, FLAGS, N_ENTRIES } ENTRIES;
typedef enum { OBSTACLE = 1 << 0, ACCEL = 1 << 1 } CELL_FLAGS;
typedef float *Field;

#define DFL1 (4.0f / 9.0f)
#define DFL2 (1.0f / 9.0f)
#define DFL3 (1.0f / 36.0f)

/* structure of arrays: one plane of cells for each direction */
#define CELL_AT(x, y, e) (((x) + (y) * PADDED_X) + MARGIN + (e) * N_CELLS)
#define LOCAL(g, e)         ((g)[CELL_AT(x, y, e)])
#define TO(g, dx, dy, e)    ((g)[CELL_AT((x + (dx) + SIZE_X) % SIZE_X, (y + (dy) + SIZE_Y) % SIZE_Y, e)])

#define TEST_FLAG(g, f)     (*((unsigned *)&LOCAL(g, FLAGS)) & (f))

#define FOR_EACH_DIRECTION(DO) \
    DO(C,  0,  0, C,  DFL1)    \
    DO(N,  0,  1, S,  DFL2)    \
    DO(S,  0, -1, N,  DFL2)    \
    DO(E,  1,  0, W,  DFL2)    \
    DO(W, -1,  0, E,  DFL2)    \
    DO(NE, 1,  1, SW, DFL3)    \
    DO(NW, -1, 1, SE, DFL3)    \
    DO(SE, 1, -1, NW, DFL3)    \
    DO(SW, -1, -1, NE, DFL3)

#define SUM_RHO(e, dx, dy, opposite, weight)  rho += LOCAL(src, e);
#define SUM_U(e, dx, dy, opposite, weight)    ux += (dx) * LOCAL(src, e); uy += (dy) * LOCAL(src, e);
#define BOUNCE(e, dx, dy, opposite, weight)   TO(dst, -(dx), -(dy), opposite) = LOCAL(src, e);
#define COLLIDE(e, dx, dy, opposite, weight)                                                    \
    {                                                                                           \
        const float cu = (dx) * ux + (dy) * uy;                                                 \
        TO(dst, dx, dy, e) = (1.0f - OMEGA) * LOCAL(src, e)                                     \
            + OMEGA * (weight) * rho * (1.0f + 3.0f * cu + 4.5f * cu * cu - 1.5f * u2);         \
    }

/* the same statements stream and collide on either side */
#define STREAM_COLLIDE_BODY                                      \
    if (TEST_FLAG(src, OBSTACLE)) {                              \
        FOR_EACH_DIRECTION(BOUNCE)                               \
    } else {                                                     \
        float rho = 0.0f, ux = 0.0f, uy = 0.0f;                  \
        FOR_EACH_DIRECTION(SUM_RHO)                              \
        FOR_EACH_DIRECTION(SUM_U)                                \
        ux /= rho;                                               \
        uy /= rho;                                               \
        if (TEST_FLAG(src, ACCEL)) { ux = 0.05f; uy = 0.002f; }  \
        const float u2 = ux * ux + uy * uy;                      \
        FOR_EACH_DIRECTION(COLLIDE)                              \
    }

__global__ void stream_collide_kernel(float *src, float *dst)
{
    const int x = threadIdx.x;
    const int y = blockIdx.x;
    STREAM_COLLIDE_BODY
}

static void stream_collide(float *src, float *dst)
{
    for (int y = 0; y < SIZE_Y; y++)
        for (int x = 0; x < SIZE_X; x++)
            STREAM_COLLIDE_BODY
}

static void new_grid(float **ptr)
{
    *ptr = (float *)calloc(N_CELLS * N_ENTRIES + 2 * MARGIN, sizeof(float));
    if (!*ptr) {
        printf("no memory for a grid of %.1f MB\n", N_CELLS * N_ENTRIES * 4.0 / (1024.0 * 1024.0));
        exit(1);
    }
}

#define DEVICE_GRID(p) cudaMalloc((void **)(p), (N_CELLS * N_ENTRIES + 2 * MARGIN) * sizeof(float))

static void fill_grid(Field grid, const char *obstacles)
{
    FILE *file = obstacles ? fopen(obstacles, "rb") : NULL;
    for (int y = 0; y < SIZE_Y; y++) {
        for (int x = 0; x < SIZE_X; x++) {
#define REST(e, dx, dy, opposite, weight) LOCAL(grid, e) = (weight);
            FOR_EACH_DIRECTION(REST)
#undef REST
            int solid = file ? fgetc(file) != '.' : (x - 16) * (x - 16) + (y - 16) * (y - 16) < 20;
            unsigned flags = 0;
            if (solid) flags |= OBSTACLE;
            if (x == 0) flags |= ACCEL;
            memcpy(&LOCAL(grid, FLAGS), &flags, sizeof flags);
        }
        if (file) fgetc(file);           /* end of the line */
    }
    if (file) fclose(file);
}

int main(int nArgs, char *arg[])
{
    struct bench_timers timers;
    struct bench_options options = bench_read_options(&nArgs, arg);
    bench_start(&timers);
    if (nArgs < 2) {
        printf("syntax: lbm <time steps> [-i <obstacle file>]\n");
        exit(1);
    }
    int steps = atoi(arg[1]);
    const size_t bytes = (N_CELLS * N_ENTRIES + 2 * MARGIN) * sizeof(float);

    Field grid, other, result, d_src, d_dst;
    new_grid(&grid);
    new_grid(&other);
    new_grid(&result);
    fill_grid(grid, options.n_inputs ? options.inputs[0] : NULL);
    memcpy(other, grid, bytes);

    DEVICE_GRID(&d_src);
    DEVICE_GRID(&d_dst);
    cudaMemcpy(d_src, grid, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_dst, grid, bytes, cudaMemcpyHostToDevice);
    CUDA_ERRCK;

    bench_switch(&timers, PHASE_KERNEL);
    for (int t = 1; t <= steps; t++) {
        stream_collide_kernel<<<SIZE_Y, SIZE_X>>>(d_src, d_dst);
        Field swap = d_src; d_src = d_dst; d_dst = swap;
        if ((t & 63) == 0) printf("timestep: %i\n", t);
    }
    cudaDeviceSynchronize();
    CUDA_ERRCK;
    cudaMemcpy(result, d_src, bytes, cudaMemcpyDeviceToHost);

    bench_switch(&timers, PHASE_COMPUTE);
    for (int t = 1; t <= steps; t++) {
        stream_collide(grid, other);
        Field swap = grid; grid = other; other = swap;
    }
    double mass = 0, worst = 0;
    for (int y = 0; y < SIZE_Y; y++)
        for (int x = 0; x < SIZE_X; x++)
            for (int e = C; e < FLAGS; e++) {
                mass += LOCAL(result, e);
                worst = fmax(worst, fabs(LOCAL(result, e) - LOCAL(grid, e)));
            }
    bench_print(&timers);
    printf("mass: %f, largest difference: %g\n", mass, worst);
    cudaFree(d_src);
    cudaFree(d_dst);
    free(grid); free(other); free(result);
    return worst > 1e-4;
}
