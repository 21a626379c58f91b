/*
 * Rotates a picture through a texture object with normalised coordinates,
 * wrapping and linear filtering, and writes it through a surface object.
 */
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>
#include "sample_common.h"

// const char *imageFilename = "teapot512.pgm";
const float angle = 0.5f;   // angle to rotate image by (in radians)
static constexpr int kBlock = 8;

struct Matrix2 {
    float m[2][2];
    __host__ __device__ float2 operator*(float2 v) const
    {
        return make_float2(m[0][0] * v.x + m[0][1] * v.y, m[1][0] * v.x + m[1][1] * v.y);
    }
    __host__ static Matrix2 rotation(float theta)
    {
        return {{{cosf(theta), -sinf(theta)}, {sinf(theta), cosf(theta)}}};
    }
};

//! @param output  one float per pixel
//! @param tex     the picture, [0, 1) along both axes
__global__ void rotateKernel(float *output, int width, int height, Matrix2 rotation, cudaTextureObject_t tex)
{
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    float2 centred = make_float2((x + 0.5f) / width - 0.5f, (y + 0.5f) / height - 0.5f);
    float2 from = rotation * centred;
    output[y * width + x] = tex2D<float>(tex, from.x + 0.5f, from.y + 0.5f);
}

__global__ void quantise(const float *input, cudaSurfaceObject_t surface, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        unsigned char v = (unsigned char)(__saturatef(input[y * width + x]) * 255.0f + 0.5f);
        surf2Dwrite(v, surface, x, y);
    }
}

static std::vector<float> readPicture(const std::string &name, int &width, int &height)
{
    std::ifstream file(name, std::ios::binary);
    std::string magic;
    int most = 0;
    if (!(file >> magic >> width >> height >> most) || magic != "P5") {
        fprintf(stderr, "%s is not a PGM\n", name.c_str());
        exit(EXIT_FAILURE);
    }
    file.get();
    std::vector<char> bytes(width * height);
    file.read(bytes.data(), bytes.size());
    std::vector<float> picture;
    for (char b : bytes) picture.push_back((unsigned char)b / (float)most);
    return picture;
}

static float reference(const std::vector<float> &p, int width, int height, float u, float v)
{
    auto wrap = [](int i, int n) { return ((i % n) + n) % n; };
    float x = u * width - 0.5f, y = v * height - 0.5f;
    int i = (int)floorf(x), j = (int)floorf(y);
    float a = x - i, b = y - j;
    auto at = [&](int i, int j) { return p[wrap(j, height) * width + wrap(i, width)]; };
    return (1 - b) * ((1 - a) * at(i, j) + a * at(i + 1, j)) + b * ((1 - a) * at(i, j + 1) + a * at(i + 1, j + 1));
}

int main(int argc, char **argv)
{
    int width = 64, height = 48;
    std::vector<float> picture;
    if (const char *name = flag(argc, (const char **)argv, "file"))
        picture = readPicture(name, width, height);
    else
        for (int i = 0; i < width * height; i++)
            picture.push_back(0.5f + 0.5f * sinf(i % width * 0.3f) * cosf(i / width * 0.2f));

    cudaArray *source, *target;
    cudaChannelFormatDesc channelDesc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    checkCudaErrors(cudaMallocArray(&source, &channelDesc, width, height));
    checkCudaErrors(cudaMemcpy2DToArray(source, 0, 0, picture.data(), width * sizeof(float), width * sizeof(float),
                                        height, cudaMemcpyHostToDevice));
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>();
    checkCudaErrors(cudaMallocArray(&target, &bytes, width, height, cudaArraySurfaceLoadStore));

    cudaTextureObject_t tex;
    cudaResourceDesc texRes;
    memset(&texRes, 0, sizeof(cudaResourceDesc));
    texRes.resType = cudaResourceTypeArray;
    texRes.res.array.array = source;
    cudaTextureDesc texDescr;
    memset(&texDescr, 0, sizeof(cudaTextureDesc));
    texDescr.normalizedCoords = true;
    texDescr.filterMode = cudaFilterModeLinear;
    texDescr.addressMode[0] = cudaAddressModeWrap;
    texDescr.addressMode[1] = cudaAddressModeWrap;
    texDescr.readMode = cudaReadModeElementType;
    checkCudaErrors(cudaCreateTextureObject(&tex, &texRes, &texDescr, NULL));

    cudaSurfaceObject_t surface;
    cudaResourceDesc surfRes = texRes;
    surfRes.res.array.array = target;
    checkCudaErrors(cudaCreateSurfaceObject(&surface, &surfRes));

    float *d_Rotated = nullptr;
    checkCudaErrors(cudaMalloc((void **)&d_Rotated, width * height * sizeof(float)));
    dim3 dimBlock(kBlock, kBlock, 1);
    dim3 dimGrid((width + dimBlock.x - 1) / dimBlock.x, (height + dimBlock.y - 1) / dimBlock.y, 1);
    const Matrix2 rotation = Matrix2::rotation(angle);

    rotateKernel<<<dimGrid, dimBlock, 0>>>(d_Rotated, width, height, rotation, tex);
    quantise<<<dimGrid, dimBlock, 0>>>(d_Rotated, surface, width, height);
    getLastCudaError("Kernel execution failed");

    std::unique_ptr<unsigned char[]> result(new unsigned char[width * height]);
    checkCudaErrors(cudaMemcpy2DFromArray(result.get(), width, target, 0, 0, width, height, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < width * height; i++) {
        float2 from = rotation * make_float2((i % width + 0.5f) / width - 0.5f, (i / width + 0.5f) / height - 0.5f);
        float expected = reference(picture, width, height, from.x + 0.5f, from.y + 0.5f);
        wrong += fabsf(result[i] / 255.0f - expected) > 0.02f;   // the hardware filters in 9 bits
    }
    printf("%s: %d pixels differ\n", wrong ? "FAILED" : "OK", wrong);

    checkCudaErrors(cudaDestroyTextureObject(tex));
    checkCudaErrors(cudaDestroySurfaceObject(surface));
    checkCudaErrors(cudaFree(d_Rotated));
    checkCudaErrors(cudaFreeArray(source));
    checkCudaErrors(cudaFreeArray(target));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
