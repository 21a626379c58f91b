// Shape from shading (Horn, "Robot vision", 1986, chapter 11): f and g, the gradient of a surface in stereographic
// coordinates, are as smooth as the brightness of the image allows, under light from one direction.
#include "../solver.cuh"

struct Shading
{
    static const int FIELDS = 2, CONSTANTS = 1; // f, g; brightness

    struct Node
    {
        __device__ void set(const float *, int, int, int) {}
    };

    __device__ static float mean(const volatile float *field, int i, int stride)
    {
        float sum = field[i - stride] + field[i + stride];
        sum += field[i - 1];
        sum += field[i + 1];
        return sum * 0.25f;
    }

    // Rounded after each operation, so that NumPy can do the same. The brightness is that of the neighbours' mean: with
    // the node's own gradient, a step of all nodes at a time would amplify a checkerboard.
    __device__ static void update(const volatile float *from, volatile float *to, const float *brightness, int plane,
                                  const Node &, int i, int stride)
    {
        const float S1 = 2.0f / 7.0f, S2 = 3.0f / 7.0f, S3 = 6.0f / 7.0f; // where the light comes from
        const float STRENGTH = 0.01f;                                     // 1 / (4 lambda)
        float f = mean(from, i, stride), g = mean(from + plane, i, stride);
        float square = __fadd_rn(__fmul_rn(f, f), __fmul_rn(g, g));
        float inverse = __frcp_rn(__fadd_rn(4.0f, square));
        float side = __fmul_rn(4.0f, __fadd_rn(__fmul_rn(S1, f), __fmul_rn(S2, g)));
        float shown = __fmul_rn(__fadd_rn(side, __fmul_rn(S3, __fadd_rn(4.0f, -square))), inverse);
        float pull = __fmul_rn(__fmul_rn(STRENGTH, __fadd_rn(brightness[i], -shown)), inverse);
        float lean = __fmul_rn(2.0f, __fadd_rn(S3, shown));
        to[i] = __fadd_rn(f, __fmul_rn(pull, __fadd_rn(4.0f * S1, -__fmul_rn(lean, f))));
        to[plane + i] = __fadd_rn(g, __fmul_rn(pull, __fadd_rn(4.0f * S2, -__fmul_rn(lean, g))));
    }
};

// How blocks exchange their boundaries, their width and height, steps between exchanges, communicating threads.
template <int EXCHANGE, int WIDTH, int HEIGHT, int INTERVAL, int COMMUNICATING, bool JACOBI = false, bool PLAIN = false>
__global__ void __maxnreg__(32) shading(Data data, int steps)
{
    run_solver<Shading, EXCHANGE, WIDTH, HEIGHT, INTERVAL, COMMUNICATING, JACOBI, PLAIN>(data, steps);
}

template __global__ void shading<NONE, 8, 8, 1, 32, true>(Data, int);
template __global__ void shading<UP_DOWN, 8, 8, 4, 32>(Data, int);
template __global__ void shading<FOUR_WAY, 8, 8, 4, 32>(Data, int);
template __global__ void shading<COMBINED, 8, 8, 4, 32>(Data, int);
template __global__ void shading<NONE, 32, 60, 1, 64, true>(Data, int);
template __global__ void shading<UP_DOWN, 32, 60, 4, 64>(Data, int);
template __global__ void shading<FOUR_WAY, 32, 60, 4, 64>(Data, int);
template __global__ void shading<COMBINED, 32, 60, 4, 64>(Data, int);
