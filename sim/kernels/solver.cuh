// Solvers of partial differential equations whose CTAs exchange boundaries without waiting for each other, after
// chapter 2 of Chen's thesis. A CTA has a block of HEIGHT x WIDTH nodes and a halo around it in the scratchpad. Its
// computing threads, the first ones, own two nodes each, half a block apart; its communicating threads move boundaries.
//
// In global memory, an array is a plane of rows of `pitch` floats: a ring of fixed nodes around all blocks, whose left
// column is LEFT - 1. A problem has FIELDS planes that change, and CONSTANTS that don't.
#define LEFT 32

enum Exchange { NONE, UP_DOWN, FOUR_WAY, COMBINED };

// Where a solver's data are in global memory; `from` and `to` may be the same.
struct Data
{
    const float *from;
    float *to;
    const float *constants;
    float *columns;   // of blocks, packed: by field, line between blocks, row of blocks, side of the line
    const int *order; // the block of each CTA
    int across;       // blocks side by side
    int down;
    int pitch;
    int plane;        // floats of a plane
};

// One CTA's share: the problem says how a node changes, the rest is the same for all.
template <class Problem, int EXCHANGE, int WIDTH, int HEIGHT, int INTERVAL, int COMMUNICATING, bool JACOBI, bool PLAIN>
struct Solver
{
    static const int COMPUTING = WIDTH * HEIGHT / 2;
    static const int STRIDE = WIDTH + 2;
    static const int NODES = STRIDE * (HEIGHT + 2);
    static const int SIDES = 2 * (WIDTH + HEIGHT); // boundary nodes, of a block and of its halo; no corners
    static const int MOVED = EXCHANGE == UP_DOWN ? 2 * WIDTH : SIDES;
    static const int MOVING = COMMUNICATING ? COMMUNICATING : COMPUTING;
    static const int ROUNDS = (MOVED + MOVING - 1) / MOVING;
    static_assert(COMPUTING % 32 == 0 && COMMUNICATING % 32 == 0, "threads of either kind fill their warps");
    static_assert(!JACOBI || EXCHANGE == NONE, "only what exchanges nothing can be exact");

    // The second buffers are there, whatever the variant, so that all have the same occupancy.
    struct Nodes
    {
        float field[2 * Problem::FIELDS][NODES];
        float constant[Problem::CONSTANTS][NODES];
    };

    const Data &data;
    Nodes &nodes;
    int origin; // of the block's first node in a plane
    int line;   // of the columns that are packed for its left side

    __device__ Solver(const Data &data, Nodes &nodes) : data(data), nodes(nodes)
    {
        int block = data.order[blockIdx.x];
        int row = block / data.across, column = block % data.across;
        line = 2 * HEIGHT * (column * data.down + row);
        origin = (1 + row * HEIGHT) * data.pitch + LEFT + column * WIDTH;
    }

    static __device__ int inside(int y, int x) { return (y + 1) * STRIDE + x + 1; }
    __device__ int outside(int y, int x) const { return origin + y * data.pitch + x; }

    // The place of the boundary's k-th node, `out` nodes outside of the block: rows above and below, then columns.
    static __device__ void side(int k, int out, int &y, int &x)
    {
        if (k < 2 * WIDTH) {
            y = k < WIDTH ? -out : HEIGHT - 1 + out;
            x = k % WIDTH;
        } else {
            y = (k - 2 * WIDTH) % HEIGHT;
            x = k - 2 * WIDTH < HEIGHT ? -out : WIDTH - 1 + out;
        }
    }

    __device__ void load(int y, int x)
    {
        int i = inside(y, x), o = outside(y, x);
        for (int k = 0; k < Problem::FIELDS; k++)
            nodes.field[k][i] = data.from[k * data.plane + o];
        for (int k = 0; k < Problem::CONSTANTS; k++)
            nodes.constant[k][i] = data.constants[k * data.plane + o];
        if (JACOBI)
            for (int k = 0; k < Problem::FIELDS; k++)
                nodes.field[Problem::FIELDS + k][i] = nodes.field[k][i];
    }

    // Where node `y` of the column that side `k` belongs to is packed: the block's own, or its neighbour's beside it.
    __device__ int packed(int k, int y, bool own) const
    {
        bool right = k >= 2 * WIDTH + HEIGHT;
        return line + (right ? 2 * HEIGHT * data.down : 0) + (own != right ? HEIGHT : 0) + y;
    }

    __device__ float *place(int field, int k, int y, int x, bool own)
    {
        if (EXCHANGE == COMBINED && k >= 2 * WIDTH)
            return data.columns + field * 2 * HEIGHT * data.down * (data.across + 1) + packed(k, y, own);
        return data.to + field * data.plane + outside(y, x);
    }

    // Stores the block's boundary, then loads the neighbours' into the halo. Any older value would do as well.
    __device__ void exchange(int thread)
    {
        int y, x;
#pragma unroll
        for (int first = 0; first < MOVED; first += MOVING) {
            int k = first + thread;
            if (k >= MOVED)
                continue;
            side(k, 0, y, x);
            for (int field = 0; field < Problem::FIELDS; field++)
                *(volatile float *)place(field, k, y, x, true) = ((volatile float *)nodes.field[field])[inside(y, x)];
        }
        float values[Problem::FIELDS][ROUNDS];
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            int k = round * MOVING + thread;
            if (k >= MOVED)
                continue;
            side(k, 1, y, x);
            for (int field = 0; field < Problem::FIELDS; field++) {
                float *from = place(field, k, y, x, false);
                if constexpr (PLAIN) // a conditional expression would be volatile on both sides
                    values[field][round] = *from;
                else
                    values[field][round] = *(volatile float *)from;
            }
        }
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            int k = round * MOVING + thread;
            if (k >= MOVED)
                continue;
            side(k, 1, y, x);
            for (int field = 0; field < Problem::FIELDS; field++)
                ((volatile float *)nodes.field[field])[inside(y, x)] = values[field][round];
        }
    }

    // With the number of threads, so that warps which have ended are missed: both kinds must count the same phases.
    static __device__ void wait_for_all() { asm volatile("bar.sync 0, %0;" : : "n"(COMPUTING + COMMUNICATING) : "memory"); }

    static __device__ int phases(int steps) { return (steps + INTERVAL - 1) / INTERVAL; }

    __device__ void communicate(int thread, int steps)
    {
        load_halo(thread);
        wait_for_all();
        if constexpr (EXCHANGE != NONE) {
#pragma unroll 1
            for (int phase = phases(steps); phase > 0; phase--) {
                exchange(thread);
                wait_for_all();
            }
        }
    }

    __device__ void load_halo(int thread)
    {
        int y, x;
#pragma unroll 1
        for (int k = thread; k < SIDES; k += MOVING) {
            side(k, 1, y, x);
            load(y, x);
        }
    }

    // A step of a thread's two nodes; volatile, since other warps change what is around them.
    __device__ void step(const typename Problem::Node *own, int first, int second, int from)
    {
        int to = JACOBI ? Problem::FIELDS - from : 0;
        Problem::update(nodes.field[from], nodes.field[to], nodes.constant[0], NODES, own[0], first, STRIDE);
        Problem::update(nodes.field[from], nodes.field[to], nodes.constant[0], NODES, own[1], second, STRIDE);
        if (JACOBI)
            asm volatile("bar.sync 1, %0;" : : "n"(COMPUTING) : "memory");
    }

    __device__ void compute(int thread, int steps)
    {
        int y = thread / WIDTH, x = thread % WIDTH;
        int first = inside(y, x), second = inside(y + HEIGHT / 2, x);
        load(y, x);
        load(y + HEIGHT / 2, x);
        if (!COMMUNICATING)
            load_halo(thread);
        wait_for_all();

        typename Problem::Node own[2];
        own[0].set(nodes.constant[0], NODES, first, STRIDE);
        own[1].set(nodes.constant[0], NODES, second, STRIDE);
        int from = 0;
        if constexpr (EXCHANGE == NONE) {
#pragma unroll 1
            for (int k = 0; k < steps; k++) {
                step(own, first, second, from);
                from = JACOBI ? Problem::FIELDS - from : 0;
            }
        } else {
#pragma unroll 1
            for (int left = steps; left > 0; left -= INTERVAL) {
#pragma unroll 1
                for (int k = min(left, INTERVAL); k > 0; k--)
                    step(own, first, second, 0);
                wait_for_all();
                if (!COMMUNICATING) {
                    exchange(thread);
                    wait_for_all();
                }
            }
        }
        store(y, x, from);
        store(y + HEIGHT / 2, x, from);
    }

    __device__ void store(int y, int x, int from)
    {
        for (int k = 0; k < Problem::FIELDS; k++) {
            float value = ((volatile float *)nodes.field[from + k])[inside(y, x)];
            data.to[k * data.plane + outside(y, x)] = value;
            if (EXCHANGE == COMBINED && (x == 0 || x == WIDTH - 1)) // so that the packed columns are as new as the field
                *(volatile float *)place(k, 2 * WIDTH + (x ? HEIGHT : 0), y, x, true) = value;
        }
    }
};

template <class Problem, int EXCHANGE, int WIDTH, int HEIGHT, int INTERVAL, int COMMUNICATING, bool JACOBI, bool PLAIN>
__device__ void run_solver(const Data &data, int steps)
{
    using Own = Solver<Problem, EXCHANGE, WIDTH, HEIGHT, INTERVAL, COMMUNICATING, JACOBI, PLAIN>;
    __shared__ typename Own::Nodes nodes;
    Own solver(data, nodes);
    int thread = threadIdx.x;
    if (thread < Own::COMPUTING)
        solver.compute(thread, steps);
    else
        solver.communicate(thread - Own::COMPUTING, steps);
}
