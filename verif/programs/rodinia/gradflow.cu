// Mean outward gradient along sampled circles of a picture, as in the search for round cells in microscope video.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define MAX_RADIUS   12
#define NPOINTS      32
#define NCIRCLES     5
#define PI           3.14159265358979f

#define CUDA_SAFE_CALL(call) do {                                     \
    cudaError_t err_ = (call);                                        \
    if (err_ != cudaSuccess) {                                        \
        fprintf(stderr, "CUDA error in file '%s' in line %i : %s.\n", \
                __FILE__, __LINE__, cudaGetErrorString(err_));        \
        exit(EXIT_FAILURE);                                           \
    } } while (0)

// offsets of the sampled points of each circle, in sine and cosine
__constant__ float c_sin_angle[NPOINTS];
__constant__ float c_cos_angle[NPOINTS];
__constant__ int   c_tX[NCIRCLES * NPOINTS];
__constant__ int   c_tY[NCIRCLES * NPOINTS];

namespace {

struct Picture {
    int width, height;
    float *pixels;
};

Picture draw(int width, int height)
{
    Picture p = { width, height, new float[width * height] };
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float dx = x - width * 0.5f, dy = y - height * 0.4f;
            p.pixels[y * width + x] = 1.0f / (1.0f + expf((sqrtf(dx * dx + dy * dy) - 8.0f) * 0.8f));
        }
    return p;
}

} // namespace

__global__ void score_kernel(cudaTextureObject_t grad_x, cudaTextureObject_t grad_y, float *score, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y;
    if (x >= width) return;

    float best = 0.f;
    for (int k = 0; k < NCIRCLES; k++) {
        float sum = 0.f, M2 = 0.f, mean = 0.f;
        for (int n = 0; n < NPOINTS; n++) {
            int px = x + c_tX[k * NPOINTS + n];
            int py = y + c_tY[k * NPOINTS + n];
            float p = tex2D<float>(grad_x, px + 0.5f, py + 0.5f) * c_cos_angle[n]
                    + tex2D<float>(grad_y, px + 0.5f, py + 0.5f) * c_sin_angle[n];
            sum += p;
            float delta = p - mean;
            mean += delta / (n + 1);
            M2 += delta * (p - mean);
        }
        mean = sum / NPOINTS;
        float variance = M2 / (NPOINTS - 1) + 1e-6f;
        if (mean * mean / variance > best)
            best = mean * mean / variance;
    }
    score[y * width + x] = best;
}

__global__ void dilate_kernel(const float *score, float *dilated, int width, int height, int r)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width * height) return;
    int x = i % width, y = i / width;
    float most = 0.f;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++) {
            int u = x + dx, v = y + dy;
            if (u >= 0 && v >= 0 && u < width && v < height && dx * dx + dy * dy <= r * r)
                most = fmaxf(most, score[v * width + u]);
        }
    dilated[i] = most;
}

static cudaTextureObject_t make_texture(const float *host, int width, int height, cudaArray_t *array)
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CUDA_SAFE_CALL(cudaMallocArray(array, &format, width, height));
    CUDA_SAFE_CALL(cudaMemcpy2DToArray(*array, 0, 0, host, width * sizeof(float), width * sizeof(float), height,
                                       cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = *array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModePoint;
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    CUDA_SAFE_CALL(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    return texture;
}

int main(int argc, char **argv)
{
    int width = argc > 1 ? atoi(argv[1]) : 96;
    int height = argc > 2 ? atoi(argv[2]) : 64;
    Picture picture = draw(width, height);

    float *gx = new float[width * height](), *gy = new float[width * height]();
    for (int y = 1; y + 1 < height; y++)
        for (int x = 1; x + 1 < width; x++) {
            gx[y * width + x] = 0.5f * (picture.pixels[y * width + x + 1] - picture.pixels[y * width + x - 1]);
            gy[y * width + x] = 0.5f * (picture.pixels[(y + 1) * width + x] - picture.pixels[(y - 1) * width + x]);
        }

    float sines[NPOINTS], cosines[NPOINTS];
    int tX[NCIRCLES * NPOINTS], tY[NCIRCLES * NPOINTS];
    for (int n = 0; n < NPOINTS; n++) {
        sines[n] = sinf(2 * PI * n / NPOINTS);
        cosines[n] = cosf(2 * PI * n / NPOINTS);
        for (int k = 0; k < NCIRCLES; k++) {
            tX[k * NPOINTS + n] = (int)(cosines[n] * (MAX_RADIUS - NCIRCLES + k));
            tY[k * NPOINTS + n] = (int)(sines[n] * (MAX_RADIUS - NCIRCLES + k));
        }
    }
    CUDA_SAFE_CALL(cudaMemcpyToSymbol(c_sin_angle, sines, sizeof(sines), 0, cudaMemcpyHostToDevice));
    CUDA_SAFE_CALL(cudaMemcpyToSymbol(c_cos_angle, cosines, sizeof(cosines), 0, cudaMemcpyHostToDevice));
    CUDA_SAFE_CALL(cudaMemcpyToSymbol(c_tX, tX, sizeof tX));
    CUDA_SAFE_CALL(cudaMemcpyToSymbol(c_tY, tY, sizeof tY));

    cudaArray_t ax, ay;
    cudaTextureObject_t tgx = make_texture(gx, width, height, &ax), tgy = make_texture(gy, width, height, &ay);
    float *d_score, *d_dilated;
    CUDA_SAFE_CALL(cudaMalloc(&d_score, width * height * sizeof(float)));
    CUDA_SAFE_CALL(cudaMalloc(&d_dilated, width * height * sizeof(float)));

    const int threads = 64;
    score_kernel<<<dim3((width + threads - 1) / threads, height), threads>>>(tgx, tgy, d_score, width, height);
    dilate_kernel<<<(width * height + 255) / 256, 256>>>(d_score, d_dilated, width, height, 3);
    CUDA_SAFE_CALL(cudaGetLastError());
    CUDA_SAFE_CALL(cudaDeviceSynchronize());

    float *dilated = new float[width * height];
    CUDA_SAFE_CALL(cudaMemcpy(dilated, d_dilated, width * height * sizeof(float), cudaMemcpyDeviceToHost));
    int at = 0;
    for (int i = 1; i < width * height; i++)
        if (dilated[i] > dilated[at]) at = i;
    printf("strongest response %f near (%d, %d)\n", dilated[at], at % width, at / width);

    cudaDestroyTextureObject(tgx);
    cudaDestroyTextureObject(tgy);
    cudaFreeArray(ax);
    cudaFreeArray(ay);
    cudaFree(d_score);
    cudaFree(d_dilated);
    delete[] gx; delete[] gy; delete[] dilated; delete[] picture.pixels;
    return abs(at % width - width / 2) <= 6 ? EXIT_SUCCESS : EXIT_FAILURE;
}
