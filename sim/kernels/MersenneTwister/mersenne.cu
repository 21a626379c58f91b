// Random numbers by many small Mersenne twisters with a state of 607 bits each, after the SDK's MersenneTwister: a
// thread has one, and its numbers lie as far apart as there are threads. Then the Box-Muller transform makes normal
// numbers of them in place.
#define WORDS 19
#define MIDDLE 9
#define UPPER 0xfffffffeu  // of a word's bits
#define LOWER 0x00000001u

struct Twister {
    unsigned int matrix, mask_b, mask_c, seed;
};

extern "C" __global__ void RandomGPU(float *numbers, const Twister *twisters, int count)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;
    Twister twister = twisters[thread];
    unsigned int state[WORDS];

    state[0] = twister.seed;
#pragma unroll 1
    for (int i = 1; i < WORDS; i++)
        state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;

    int at = 0;
    unsigned int next = state[0];
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        int after = at + 1 < WORDS ? at + 1 : 0;
        int middle = at + MIDDLE < WORDS ? at + MIDDLE : at + MIDDLE - WORDS;
        unsigned int word = next;
        next = state[after];
        word = (word & UPPER) | (next & LOWER);
        word = state[middle] ^ word >> 1 ^ (word & 1 ? twister.matrix : 0);
        state[at] = word;
        at = after;

        word ^= word >> 12;
        word ^= word << 7 & twister.mask_b;
        word ^= word << 15 & twister.mask_c;
        word ^= word >> 18;
        numbers[thread + i * threads] = ((float)word + 1.0f) / 4294967296.0f;
    }
}

// `count` is even.
extern "C" __global__ void BoxMullerGPU(float *numbers, int count)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;

#pragma unroll 1
    for (int i = 0; i < count; i += 2) {
        float *first = numbers + thread + i * threads;
        float *second = first + threads;
        float radius = sqrtf(-2.0f * logf(*first));
        float angle = 6.28318530717958647692f * *second;
        *first = radius * __cosf(angle);
        *second = radius * __sinf(angle);
    }
}
