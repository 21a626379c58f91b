// A stencil of 25 points, of order eight in each of three directions, after the SDK's 3DFD: a CTA walks along z with a
// tile of the plane and its halo in the scratchpad, and the planes before and behind it in registers.
#define RADIUS 4
#define TILE 16

__constant__ float coefficients[RADIUS + 1];

// Grids begin with their first inner point and have RADIUS points more on all sides; rows are `pitch` apart, planes
// `plane`. Inside, they are multiples of TILE in x and y.
extern "C" __global__ void stencil_3D_16x16_order8(float *output, const float *input, int pitch, int plane, int planes)
{
    __shared__ float tile[TILE + 2 * RADIUS][TILE + 2 * RADIUS];
    int tx = threadIdx.x + RADIUS;
    int ty = threadIdx.y + RADIUS;
    int at = (blockIdx.y * TILE + threadIdx.y) * pitch + blockIdx.x * TILE + threadIdx.x;
    float column[2 * RADIUS + 1];  // the thread's points along z

#pragma unroll
    for (int k = 0; k < 2 * RADIUS; k++)
        column[k + 1] = input[at + (k - RADIUS) * plane];

#pragma unroll 1
    for (int z = 0; z < planes; z++) {
#pragma unroll
        for (int k = 0; k < 2 * RADIUS; k++)
            column[k] = column[k + 1];
        column[2 * RADIUS] = input[at + RADIUS * plane];

        __syncthreads();
        if (threadIdx.y < RADIUS) {
            tile[threadIdx.y][tx] = input[at - RADIUS * pitch];
            tile[threadIdx.y + TILE + RADIUS][tx] = input[at + TILE * pitch];
        }
        if (threadIdx.x < RADIUS) {
            tile[ty][threadIdx.x] = input[at - RADIUS];
            tile[ty][threadIdx.x + TILE + RADIUS] = input[at + TILE];
        }
        tile[ty][tx] = column[RADIUS];
        __syncthreads();

        float sum = coefficients[0] * column[RADIUS];
#pragma unroll
        for (int k = 1; k <= RADIUS; k++)
            sum += coefficients[k] * (column[RADIUS - k] + column[RADIUS + k] + tile[ty - k][tx] + tile[ty + k][tx] +
                                      tile[ty][tx - k] + tile[ty][tx + k]);
        output[at] = sum;
        at += plane;
    }
}
