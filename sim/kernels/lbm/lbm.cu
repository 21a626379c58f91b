// A step of the lattice Boltzmann method in three dimensions with 19 directions (D3Q19), after Parboil's lbm: a thread
// reads its cell's densities, lets them collide, and pushes each to the neighbour that it moves to. Each direction has
// an array of `cells` densities, the last array has flags. A CTA has a row of cells.
#define DIRECTIONS 19
#define OBSTACLE 1     // flags
#define ACCELERATED 2
#define OMEGA 1.95f

__device__ static constexpr float weight(int k)
{
    return k == 0 ? 1.0f / 3.0f : k < 7 ? 1.0f / 18.0f : 1.0f / 36.0f;
}

// The rows of a plane are `pitch` apart, planes `plane`.
extern "C" __global__ void performStreamCollide_kernel(const float *source, float *target, int pitch, int plane,
                                                       int cells)
{
    // Directions 2 i - 1 and 2 i are opposite.
    constexpr int X[] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
    constexpr int Y[] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
    constexpr int Z[] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
    int own = threadIdx.x + blockIdx.x * pitch + blockIdx.y * plane;
    float f[DIRECTIONS];

#pragma unroll
    for (int k = 0; k < DIRECTIONS; k++)
        f[k] = source[k * cells + own];
    unsigned int flags = __float_as_uint(source[DIRECTIONS * cells + own]);

    if (flags & OBSTACLE) {
#pragma unroll
        for (int k = 1; k < DIRECTIONS; k += 2) {
            float there = f[k];
            f[k] = f[k + 1];
            f[k + 1] = there;
        }
    } else {
        float density = 0.0f, x = 0.0f, y = 0.0f, z = 0.0f;
#pragma unroll
        for (int k = 0; k < DIRECTIONS; k++) {
            density += f[k];
            if (X[k])
                x += X[k] * f[k];
            if (Y[k])
                y += Y[k] * f[k];
            if (Z[k])
                z += Z[k] * f[k];
        }
        x /= density;
        y /= density;
        z /= density;
        if (flags & ACCELERATED) {
            x = 0.005f;
            y = 0.002f;
            z = 0.0f;
        }
        float rest = 1.0f - 1.5f * (x * x + y * y + z * z);
#pragma unroll
        for (int k = 0; k < DIRECTIONS; k++) {
            float part = -0.0f;  // to which a number is added without an instruction
            if (X[k])
                part += X[k] * x;
            if (Y[k])
                part += Y[k] * y;
            if (Z[k])
                part += Z[k] * z;
            f[k] = (1.0f - OMEGA) * f[k] + OMEGA * weight(k) * density * (part * (4.5f * part + 3.0f) + rest);
        }
    }
#pragma unroll
    for (int k = 0; k < DIRECTIONS; k++)
        target[k * cells + own + X[k] + Y[k] * pitch + Z[k] * plane] = f[k];
}
