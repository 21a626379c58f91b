// Separable convolution of an image with 17 coefficients per direction, after the SDK's convolutionSeparable: a CTA loads
// eight tiles of results and one tile of halo on either side into the scratchpad. Outside the image there are zeros.
#define RADIUS 8
#define STEPS 8  // tiles of results per CTA
#define HALO 1   // tiles on either side
#define ROWS_X 16
#define ROWS_Y 4
#define COLUMNS_X 16
#define COLUMNS_Y 8

__constant__ float coefficients[2 * RADIUS + 1];

// The image's width must be a multiple of 16 * 8, its height of 4.
extern "C" __global__ void convolutionRowsKernel(float *target, const float *source, int width, int height, int pitch)
{
    __shared__ float data[ROWS_Y][(STEPS + 2 * HALO) * ROWS_X];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = (blockIdx.x * STEPS - HALO) * ROWS_X + tx;
    int y = blockIdx.y * ROWS_Y + ty;

    source += y * pitch + x;
    target += y * pitch + x;
#pragma unroll
    for (int i = HALO; i < HALO + STEPS; i++)
        data[ty][tx + i * ROWS_X] = source[i * ROWS_X];
#pragma unroll
    for (int i = 0; i < HALO; i++)
        data[ty][tx + i * ROWS_X] = x >= -i * ROWS_X ? source[i * ROWS_X] : 0.0f;
#pragma unroll
    for (int i = HALO + STEPS; i < HALO + STEPS + HALO; i++)
        data[ty][tx + i * ROWS_X] = width - x > i * ROWS_X ? source[i * ROWS_X] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = HALO; i < HALO + STEPS; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++)
            sum += coefficients[RADIUS - j] * data[ty][tx + i * ROWS_X + j];
        target[i * ROWS_X] = sum;
    }
}

// The image's width must be a multiple of 16, its height of 8 * 8. A column of the scratchpad's has a word more, so that
// the columns of a warp lie on different banks.
extern "C" __global__ void convolutionColumnsKernel(float *target, const float *source, int width, int height,
                                                    int pitch)
{
    __shared__ float data[COLUMNS_X][(STEPS + 2 * HALO) * COLUMNS_Y + 1];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = blockIdx.x * COLUMNS_X + tx;
    int y = (blockIdx.y * STEPS - HALO) * COLUMNS_Y + ty;

    source += y * pitch + x;
    target += (y + HALO * COLUMNS_Y) * pitch + x;
#pragma unroll
    for (int i = HALO; i < HALO + STEPS; i++)
        data[tx][ty + i * COLUMNS_Y] = source[i * COLUMNS_Y * pitch];
#pragma unroll
    for (int i = 0; i < HALO; i++)
        data[tx][ty + i * COLUMNS_Y] = y >= -i * COLUMNS_Y ? source[i * COLUMNS_Y * pitch] : 0.0f;
#pragma unroll
    for (int i = HALO + STEPS; i < HALO + STEPS + HALO; i++)
        data[tx][ty + i * COLUMNS_Y] = height - y > i * COLUMNS_Y ? source[i * COLUMNS_Y * pitch] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = HALO; i < HALO + STEPS; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++)
            sum += coefficients[RADIUS - j] * data[tx][ty + i * COLUMNS_Y + j];
        *target = sum;
        target += COLUMNS_Y * pitch;
    }
}
