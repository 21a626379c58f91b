// Seamless cloning (Perez, Gangnet and Blake, "Poisson image editing", 2003): the field has the stronger one of the two
// images' gradients, and the background's values where the mask is 0.
#include "../solver.cuh"

struct Poisson
{
    static const int FIELDS = 1, CONSTANTS = 3; // source, background, mask

    // Of one node: what the gradients ask for, whether it changes at all, and the value it has otherwise.
    struct Node
    {
        float guidance, fixed;
        bool free;

        __device__ static float stronger(const float *source, const float *background, int i, int next)
        {
            float one = source[i] - source[next], other = background[i] - background[next];
            return fabsf(other) > fabsf(one) ? other : one;
        }

        __device__ void set(const float *constant, int plane, int i, int stride)
        {
            const float *source = constant, *background = constant + plane;
            guidance = stronger(source, background, i, i - stride) + stronger(source, background, i, i + stride);
            guidance += stronger(source, background, i, i - 1);
            guidance += stronger(source, background, i, i + 1);
            fixed = background[i];
            free = constant[2 * plane + i] != 0.0f;
        }
    };

    __device__ static void update(const volatile float *from, volatile float *to, const float *, int, const Node &node,
                                  int i, int stride)
    {
        float sum = from[i - stride] + from[i + stride];
        sum += from[i - 1];
        sum += from[i + 1];
        sum = (sum + node.guidance) * 0.25f;
        to[i] = node.free ? sum : node.fixed;
    }
};

// How blocks exchange their boundaries, their width and height, steps between exchanges, communicating threads.
template <int EXCHANGE, int WIDTH, int HEIGHT, int INTERVAL, int COMMUNICATING, bool JACOBI = false, bool PLAIN = false>
__global__ void __maxnreg__(32) poisson(Data data, int steps)
{
    run_solver<Poisson, EXCHANGE, WIDTH, HEIGHT, INTERVAL, COMMUNICATING, JACOBI, PLAIN>(data, steps);
}

template __global__ void poisson<NONE, 8, 8, 1, 32, true>(Data, int);
template __global__ void poisson<UP_DOWN, 8, 8, 4, 32>(Data, int);
template __global__ void poisson<FOUR_WAY, 8, 8, 4, 32>(Data, int);
template __global__ void poisson<COMBINED, 8, 8, 4, 32>(Data, int);
template __global__ void poisson<NONE, 32, 60, 1, 64, true>(Data, int);
template __global__ void poisson<UP_DOWN, 32, 60, 4, 64>(Data, int);
template __global__ void poisson<FOUR_WAY, 32, 60, 4, 64>(Data, int);
template __global__ void poisson<COMBINED, 32, 60, 4, 64>(Data, int);
