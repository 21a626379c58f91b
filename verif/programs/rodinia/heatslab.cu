#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <assert.h>
#include <sys/time.h>

#define TILE_X 32
#define TILE_Y 8
#define LINE 128

/* material */
float conductivity = 0.12f;
float ambient      = 45.0f;
const float loss   = 0.002f;

#define AT(x, y, z) ((x) + nx * ((y) + ny * (z)))

static double seconds()
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return t.tv_sec + 1e-6 * t.tv_usec;
}

static void die(const char *why, const char *what)
{
    fprintf(stderr, "heatslab: %s: %s\n", why, what);
    exit(1);
}

void load(const char *name, float *field, int n)
{
    char text[LINE];
    FILE *in = fopen(name, "r");
    if (!in)
        die("cannot open", name);
    for (int i = 0; i < n; i++) {
        if (fgets(text, LINE, in) == NULL)
            die("too few lines", name);
        if (sscanf(text, "%f", field + i) != 1)
            die("not a number", text);
    }
    fclose(in);
}

/* Marches along z with three planes in registers. */
__global__ void __launch_bounds__(TILE_X * TILE_Y)
heat_step(const float *__restrict__ in, const float *__restrict__ source, float *__restrict__ out,
          int nx, int ny, int nz, float k, float loss, float ambient)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;

    int west  = x > 0      ? -1  : 0;
    int east  = x < nx - 1 ? 1   : 0;
    int north = y > 0      ? -nx : 0;
    int south = y < ny - 1 ? nx  : 0;

    int here = AT(x, y, 0);
    float below = in[here], centre = in[here], above;
    for (int z = 0; z < nz; z++) {
        above = z < nz - 1 ? in[here + nx * ny] : centre;
        float sum = in[here + west] + in[here + east] + in[here + north] + in[here + south] + below + above;
        out[here] = centre + k * (sum - 6.0f * centre) + source[here] - loss * (centre - ambient);
        below = centre;
        centre = above;
        here += nx * ny;
    }
}

void heat_host(const float *in, const float *source, float *out, int nx, int ny, int nz)
{
    for (int z = 0; z < nz; z++)
        for (int y = 0; y < ny; y++)
            for (int x = 0; x < nx; x++) {
                float c = in[AT(x, y, z)];
                float sum = in[AT(x ? x - 1 : x, y, z)] + in[AT(x < nx - 1 ? x + 1 : x, y, z)]
                          + in[AT(x, y ? y - 1 : y, z)] + in[AT(x, y < ny - 1 ? y + 1 : y, z)]
                          + in[AT(x, y, z ? z - 1 : z)] + in[AT(x, y, z < nz - 1 ? z + 1 : z)];
                out[AT(x, y, z)] = c + conductivity * (sum - 6.0f * c) + source[AT(x, y, z)] - loss * (c - ambient);
            }
}

void swap(float **a, float **b) { float *t = *a; *a = *b; *b = t; }

int main(int argc, char *argv[])
{
    if (argc < 4) {
        fprintf(stderr, "Usage: %s <side> <layers> <steps> [<temperatures> <sources>]\n"
                        "\t<side>   cells along x and y\n"
                        "\t<layers> cells along z\n", argv[0]);
        exit(1);
    }
    int nx = atoi(argv[1]), ny = nx, nz = atoi(argv[2]), steps = atoi(argv[3]);
    assert(nx > 0 && nz > 0 && steps >= 0);
    int n = nx * ny * nz;
    size_t bytes = n * sizeof(float);

    float *t0 = (float *)malloc(bytes), *t1 = (float *)malloc(bytes);
    float *heat = (float *)malloc(bytes), *result = (float *)malloc(bytes);
    if (argc == 6) {
        load(argv[4], t0, n);
        load(argv[5], heat, n);
    } else {
        unsigned state = 77;
        for (int i = 0; i < n; i++) {
            state = state * 1103515245u + 12345u;
            t0[i] = 40.0f + (state >> 16) % 400 * 0.1f;
            heat[i] = i % 97 == 0 ? 0.5f : 0.0f;
        }
    }

    float *d_in, *d_out, *d_heat;
    cudaMalloc((void **)&d_in, bytes);
    cudaMalloc((void **)&d_out, bytes);
    cudaMalloc((void **)&d_heat, bytes);
    cudaMemcpy(d_in, t0, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_heat, heat, bytes, cudaMemcpyHostToDevice);
    cudaFuncSetCacheConfig(heat_step, cudaFuncCachePreferL1);

    dim3 block(TILE_X, TILE_Y, 1);
    dim3 grid((nx + TILE_X - 1) / TILE_X, (ny + TILE_Y - 1) / TILE_Y, 1);
    double begin = seconds();
    for (int s = 0; s < steps; ++s) {
        heat_step<<<grid, block>>>
            (d_in, d_heat, d_out, nx, ny, nz, conductivity, loss, ambient);
        swap(&d_in, &d_out);
    }
    cudaDeviceSynchronize();
    printf("Time: %.6f s\n", seconds() - begin);
    cudaMemcpy(result, d_in, bytes, cudaMemcpyDeviceToHost);

    for (int s = 0; s < steps; ++s) {
        heat_host(t0, heat, t1, nx, ny, nz);
        swap(&t0, &t1);
    }
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (result[i] - t0[i]) * (result[i] - t0[i]);
    printf("RMS error: %e\n", sqrt(sum / n));

    cudaFree(d_in); cudaFree(d_out); cudaFree(d_heat);
    free(t0); free(t1); free(heat); free(result);
    return sum / n < 1e-6 ? 0 : 1;
}
