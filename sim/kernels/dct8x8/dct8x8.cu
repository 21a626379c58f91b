// Discrete cosine transform of blocks of 8 x 8 pixels and its inverse, after the SDK's dct8x8: a CTA has a block, a
// thread an element of it. Both are products of three matrices, B^T A B and B A B^T with the basis B; A comes from a
// texture, and the first product goes through the scratchpad.
#define SIZE 8

__constant__ float basis[SIZE * SIZE];  // [place][frequency]

// Strides are those of the basis, from one term of a sum to the next and from one result to the next.
template <int term, int result>
__device__ static void transform(float *target, int width, cudaTextureObject_t source)
{
    __shared__ float block[SIZE][SIZE];
    __shared__ float product[SIZE][SIZE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = blockIdx.x * SIZE + tx;
    int y = blockIdx.y * SIZE + ty;

    block[ty][tx] = tex2D<float>(source, x + 0.5f, y + 0.5f);
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        sum += basis[i * term + ty * result] * block[i][tx];
    product[ty][tx] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        sum += product[ty][i] * basis[i * term + tx * result];
    target[y * width + x] = sum;
}

extern "C" __global__ void CUDAkernel1DCT(float *target, int width, cudaTextureObject_t source)
{
    transform<SIZE, 1>(target, width, source);
}

extern "C" __global__ void CUDAkernel1IDCT(float *target, int width, cudaTextureObject_t source)
{
    transform<1, SIZE>(target, width, source);
}
