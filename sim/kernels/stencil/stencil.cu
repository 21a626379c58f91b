// One step of a stencil of seven points, after Parboil's stencil: a CTA walks along z with a tile of the plane in the
// scratchpad and, of each thread's elements, the plane below and above in registers. A thread has two elements of a row,
// BLOCK_X apart. What lies beyond the tile is read from global memory.
#define BLOCK_X 32
#define BLOCK_Y 16

extern "C" __global__ void block2D_hybrid_coarsen_x(float c0, float c1, const float *source, float *target, int nx,
                                                    int ny, int nz)
{
    __shared__ float tile[2 * BLOCK_X * BLOCK_Y];
    const int width = 2 * BLOCK_X;
    int i = blockIdx.x * width + threadIdx.x;
    int i2 = i + BLOCK_X;
    int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    int own = threadIdx.y * width + threadIdx.x;
    int own2 = own + BLOCK_X;
    int plane = nx * ny;
    int at = j * nx + i;  // in its plane

    tile[own] = 0.0f;
    tile[own2] = 0.0f;
    __syncthreads();

    bool inside = i < nx && j < ny;
    bool inside2 = i2 < nx && j < ny;
    bool computed = i > 0 && i < nx - 1 && j > 0 && j < ny - 1;
    bool computed2 = i2 < nx - 1 && j > 0 && j < ny - 1;
    bool left_rim = threadIdx.x == 0;
    bool right_rim = threadIdx.x == BLOCK_X - 1;
    bool lower_rim = threadIdx.y == 0;
    bool upper_rim = threadIdx.y == BLOCK_Y - 1;

    float bottom = 0.0f, bottom2 = 0.0f, top = 0.0f, top2 = 0.0f;
    if (inside) {
        bottom = source[at];
        tile[own] = source[plane + at];
    }
    if (inside2) {
        bottom2 = source[at + BLOCK_X];
        tile[own2] = source[plane + at + BLOCK_X];
    }
    __syncthreads();

#pragma unroll 1
    for (int k = 1; k < nz - 1; k++) {
        if (inside)
            top = source[(k + 1) * plane + at];
        if (computed) {
            float up = upper_rim ? source[k * plane + at + nx] : tile[own + width];
            float down = lower_rim ? source[k * plane + at - nx] : tile[own - width];
            float left = left_rim ? source[k * plane + at - 1] : tile[own - 1];
            target[k * plane + at] = (top + bottom + up + down + left + tile[own + 1]) * c1 - tile[own] * c0;
        }
        if (inside2)
            top2 = source[(k + 1) * plane + at + BLOCK_X];
        if (computed2) {
            float up = upper_rim ? source[k * plane + at + BLOCK_X + nx] : tile[own2 + width];
            float down = lower_rim ? source[k * plane + at + BLOCK_X - nx] : tile[own2 - width];
            float right = right_rim ? source[k * plane + at + BLOCK_X + 1] : tile[own2 + 1];
            target[k * plane + at + BLOCK_X] =
                (top2 + bottom2 + up + down + right + tile[own2 - 1]) * c1 - tile[own2] * c0;
        }
        __syncthreads();
        bottom = tile[own];
        tile[own] = top;
        bottom2 = tile[own2];
        tile[own2] = top2;
        __syncthreads();
    }
}
