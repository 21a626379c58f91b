// Functions, structs and local arrays for the PTX front end: calls that are not inlined by the compiler, an indirect
// call, a struct by value, returns out of loops, dynamic indices into local memory, a switch, both kinds of shared memory.
// The same source compiled for the host prints the inputs and the expected results (see README.md).

#include <cstdio>

#ifdef __CUDACC__
#define FUNCTION __device__ __noinline__
#define TABLE __device__
#define CONSTANT __constant__
#else
#define FUNCTION
#define TABLE
#define CONSTANT
#endif

constexpr int THREADS = 64;  // per CTA

struct Body {
    float mass;
    int charge;
    short spin[3];
    double place;
};

FUNCTION Body moved(Body body, int by) {
    Body result;
    result.mass = body.mass * by;
    result.charge = body.charge + by;
    for (int i = 0; i < 3; i++) result.spin[i] = body.spin[(i + by) % 3];
    result.place = body.place - by;
    return result;
}

FUNCTION int collatz(int n) {
    int steps = 0;
    while (n != 1) {
        if (steps > 50) return -steps;
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

FUNCTION unsigned sum(unsigned a, unsigned b) { return a + b; }
FUNCTION unsigned product(unsigned a, unsigned b) { return a * b; }
FUNCTION unsigned difference(unsigned a, unsigned b) { return a ^ b; }

TABLE unsigned (*operations[3])(unsigned, unsigned) = {sum, product, difference};
CONSTANT int fibonacci[8] = {1, 2, 3, 5, 8, 13, 21, 34};

FUNCTION unsigned first_half(int thread, int input, Body body) {
    unsigned total = collatz(thread + 1);
    Body then = moved(body, thread % 5);
    total += (int)then.mass * 3 + then.charge * 7 + then.spin[thread % 3] * 11 + (int)(then.place * 2);
    total += operations[(unsigned)(thread + input) % 3](input, total);
    int local[16];
    for (int i = 0; i < 16; i++) local[i] = i;
    for (int i = 0; i < 16; i++) local[(i * input) & 15] = i * thread;
    for (int i = 0; i < 16; i++) total += local[(i + thread) & 15] << i;
    return total;
}

FUNCTION unsigned second_half(int thread, int input, unsigned total) {
    switch (input & 7) {
    case 0: return total + 1;
    case 1: return total * 3;
    case 2: return total - fibonacci[thread & 7];
    case 3: return total ^ 0x55;
    case 4: return ~total;
    case 5: return total << 2;
    case 6: return (int)total / 7;
    default: return (int)total % 1000;
    }
}

#ifdef __CUDACC__
__shared__ unsigned totals[THREADS];

extern "C" __global__ void functions(unsigned *out, const int *in, Body body) {
    extern __shared__ int inputs[];
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int input = in[thread];
    unsigned total = first_half(thread, input, body);
    totals[threadIdx.x] = total;
    inputs[threadIdx.x] = input;
    __syncthreads();
    total += totals[(threadIdx.x + 1) % THREADS] - inputs[(threadIdx.x + 3) % THREADS];
    out[thread] = second_half(thread, input, total);
}
#else
int main() {
    constexpr int COUNT = 2 * THREADS;
    int in[COUNT];
    unsigned totals[COUNT], random = 12345;
    Body body = {1.5f, -7, {3, -4, 5}, 2.25};
    for (int t = 0; t < COUNT; t++) {
        random = random * 1664525u + 1013904223u;
        in[t] = (int)(random >> 8) % 2000 - 500;
        totals[t] = first_half(t, in[t], body);
    }
    for (int t = 0; t < COUNT; t++) {
        int first = t / THREADS * THREADS, place = t % THREADS;
        unsigned total = totals[t] + totals[first + (place + 1) % THREADS] - in[first + (place + 3) % THREADS];
        printf("%d %u\n", in[t], second_half(t, in[t], total));
    }
}
#endif
