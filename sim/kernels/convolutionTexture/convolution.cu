// Separable convolution of an image with 17 coefficients per direction, after the SDK's convolutionTexture: every thread
// fetches the pixels of its result from a texture, which gives the nearest pixel outside the image.
#define RADIUS 8

__constant__ float coefficients[2 * RADIUS + 1];

extern "C" __global__ void convolutionRowsKernel(float *target, int width, int height, cudaTextureObject_t source)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += tex2D<float>(source, x + 0.5f + k, y + 0.5f) * coefficients[RADIUS - k];
    target[y * width + x] = sum;
}

extern "C" __global__ void convolutionColumnsKernel(float *target, int width, int height, cudaTextureObject_t source)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += tex2D<float>(source, x + 0.5f, y + 0.5f + k) * coefficients[RADIUS - k];
    target[y * width + x] = sum;
}
