// Speckle-reducing anisotropic diffusion, after Rodinia's srad_v2: a CTA of 16 x 16 threads has a tile of the image in
// the scratchpad and, in tiles of their own, what lies north, south, west and east of it; each of those holds a row or
// a column 16 times. Rows and columns are multiples of 16. Beyond the rim the image goes on as at the rim.
#define BLOCK 16

// The difference to the four neighbours, and how much may flow.
extern "C" __global__ void srad_cuda_1(float *east_slope, float *west_slope, float *north_slope, float *south_slope,
                                       const float *image, float *coefficient, int columns, int rows, float q0_squared)
{
    __shared__ float tile[BLOCK][BLOCK];
    __shared__ float result[BLOCK][BLOCK];
    __shared__ float north[BLOCK][BLOCK];
    __shared__ float south[BLOCK][BLOCK];
    __shared__ float west[BLOCK][BLOCK];
    __shared__ float east[BLOCK][BLOCK];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = BLOCK * blockIdx.x;
    int y = BLOCK * blockIdx.y;
    int index = columns * (y + ty) + x + tx;

    north[ty][tx] = image[columns * max(y - 1, 0) + x + tx];
    south[ty][tx] = image[columns * min(y + BLOCK, rows - 1) + x + tx];
    __syncthreads();
    west[ty][tx] = image[columns * (y + ty) + max(x - 1, 0)];
    east[ty][tx] = image[columns * (y + ty) + min(x + BLOCK, columns - 1)];
    __syncthreads();
    tile[ty][tx] = image[index];
    __syncthreads();

    float centre = tile[ty][tx];
    float n = (ty == 0 ? north[ty][tx] : tile[ty - 1][tx]) - centre;
    float s = (ty == BLOCK - 1 ? south[ty][tx] : tile[ty + 1][tx]) - centre;
    float w = (tx == 0 ? west[ty][tx] : tile[ty][tx - 1]) - centre;
    float e = (tx == BLOCK - 1 ? east[ty][tx] : tile[ty][tx + 1]) - centre;

    float gradient_squared = (n * n + s * s + w * w + e * e) / (centre * centre);
    float laplacian = (n + s + w + e) / centre;
    float numerator = 0.5f * gradient_squared - (1.0f / 16.0f) * (laplacian * laplacian);
    float denominator = 1.0f + 0.25f * laplacian;
    float q_squared = numerator / (denominator * denominator);
    float c = 1.0f / (1.0f + (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared)));

    result[ty][tx] = c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
    __syncthreads();
    coefficient[index] = result[ty][tx];
    east_slope[index] = e;
    west_slope[index] = w;
    south_slope[index] = s;
    north_slope[index] = n;
}

// What flows to and from the neighbours, with the coefficient of the southern or eastern of two elements.
extern "C" __global__ void srad_cuda_2(const float *east_slope, const float *west_slope, const float *north_slope,
                                       const float *south_slope, float *image, const float *coefficient, int columns,
                                       int rows, float lambda)
{
    __shared__ float tile[BLOCK][BLOCK];
    __shared__ float result[BLOCK][BLOCK];
    __shared__ float centre[BLOCK][BLOCK];
    __shared__ float south[BLOCK][BLOCK];
    __shared__ float east[BLOCK][BLOCK];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = BLOCK * blockIdx.x;
    int y = BLOCK * blockIdx.y;
    int index = columns * (y + ty) + x + tx;

    tile[ty][tx] = image[index];
    __syncthreads();
    south[ty][tx] = coefficient[columns * min(y + BLOCK, rows - 1) + x + tx];
    __syncthreads();
    east[ty][tx] = coefficient[columns * (y + ty) + min(x + BLOCK, columns - 1)];
    __syncthreads();
    centre[ty][tx] = coefficient[index];
    __syncthreads();

    float c = centre[ty][tx];
    float c_south = ty == BLOCK - 1 ? south[ty][tx] : centre[ty + 1][tx];
    float c_east = tx == BLOCK - 1 ? east[ty][tx] : centre[ty][tx + 1];
    float divergence = c * north_slope[index] + c_south * south_slope[index] + c * west_slope[index] +
                       c_east * east_slope[index];
    result[ty][tx] = tile[ty][tx] + 0.25f * lambda * divergence;
    __syncthreads();
    image[index] = result[ty][tx];
}
