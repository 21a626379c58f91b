// How old the boundary values are that a solver's CTAs read: nodes hold the steps that they have taken. A step also does
// what a step of shape from shading does, so that it takes as long.
#include "../../kernels/shape-from-shading/shading.cu"

struct Ages
{
    static const int FIELDS = 2, CONSTANTS = 1; // steps, ages that were seen; sides on which another CTA's nodes are
    static const int PHASE = 4;                 // steps

    typedef Shading::Node Node;

    // An age in a byte of its own: of a value no older than the node itself; by one phase at most, by two, by more.
    static __device__ unsigned counted(float age)
    {
        int kind = age <= 0 ? 0 : age <= PHASE ? 1 : age <= 2 * PHASE ? 2 : 3;
        return 1u << 8 * kind;
    }

    __device__ static void update(const volatile float *from, volatile float *to, const float *sides, int plane,
                                  const Node &node, int i, int stride)
    {
        Shading::update(from, to + 2 * plane, sides, plane, node, i, stride);
        float own = from[i];
        if (int side = sides[i]) {
            unsigned seen = __float_as_uint(from[plane + i]);
            if (side & 1)
                seen += counted(own - from[i - stride]);
            if (side & 2)
                seen += counted(own - from[i + stride]);
            if (side & 4)
                seen += counted(own - from[i - 1]);
            if (side & 8)
                seen += counted(own - from[i + 1]);
            to[plane + i] = __uint_as_float(seen);
        }
        to[i] = own + 1;
    }
};

template <int EXCHANGE, int WIDTH, int HEIGHT, int INTERVAL, int COMMUNICATING, bool JACOBI = false, bool PLAIN = false>
__global__ void __maxnreg__(32) ages(Data data, int steps)
{
    static_assert(INTERVAL == Ages::PHASE, "ages are counted in phases");
    run_solver<Ages, EXCHANGE, WIDTH, HEIGHT, INTERVAL, COMMUNICATING, JACOBI, PLAIN>(data, steps);
}
