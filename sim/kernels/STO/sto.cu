// SHA-1 of windows that overlap, after StoreGPU's sha1_overlap in GPGPU-Sim's benchmarks: a thread hashes a window of
// its own. The 16 words of a block of the message stand in the scratchpad, word by word for the 32 lanes of a warp, so
// that each lane has a bank. Windows are whole words.
#define WARP 32
#define WORDS 16         // of a block of the message
#define SCRATCHPAD 4064  // words, as in the original: what a CTA could have on its GPU; four warps use 2048
#define DIGEST 20        // bytes

__device__ static unsigned int rotate(unsigned int x, int n)
{
    return (x << n) | (x >> (32 - n));
}

__device__ static void put_big_endian(volatile unsigned char *bytes, unsigned int value)
{
    bytes[0] = value >> 24;
    bytes[1] = value >> 16;
    bytes[2] = value >> 8;
    bytes[3] = value;
}

__device__ static unsigned int get_big_endian(const volatile unsigned char *bytes)
{
    return (unsigned int)bytes[0] << 24 | (unsigned int)bytes[1] << 16 | (unsigned int)bytes[2] << 8 | bytes[3];
}

__device__ static unsigned int mix(int round, unsigned int b, unsigned int c, unsigned int d)
{
    if (round < 20)
        return (d ^ (b & (c ^ d))) + 0x5a827999u;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1u;
    if (round < 60)
        return ((b & c) | (d & (b | c))) + 0x8f1bbcdcu;
    return (b ^ c ^ d) + 0xca62c1d6u;
}

// `word` is volatile so that the compiler leaves it in the scratchpad.
__device__ static void sha1(const unsigned int *input, volatile unsigned int *word, unsigned int bytes,
                            unsigned char *digest)
{
    unsigned int state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    int blocks = bytes / 64 + 1;  // the last holds the end mark and the length: up to 52 bytes of the message

    for (int block = 0; block < blocks; block++) {
        const unsigned int *from = &input[WORDS * block];
        if (block == blocks - 1) {
            int rest = bytes % 64 / 4;
            for (int i = rest + 1; i < WORDS - 2; i++)
                word[WARP * i] = 0;
            for (int i = 0; i < rest; i++)
                word[WARP * i] = from[i];
            word[WARP * rest] = 0x80;
            put_big_endian((volatile unsigned char *)&word[WARP * (WORDS - 2)], bytes >> 29);
            put_big_endian((volatile unsigned char *)&word[WARP * (WORDS - 1)], bytes << 3);
        } else {
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                word[WARP * i] = from[i];
        }
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            word[WARP * i] = get_big_endian((volatile unsigned char *)&word[WARP * i]);

        unsigned int a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
#pragma unroll
        for (int round = 0; round < 80; round++) {
            volatile unsigned int *place = &word[WARP * (round % WORDS)];
            if (round >= WORDS)
                *place = rotate(word[WARP * ((round - 3) % WORDS)] ^ word[WARP * ((round - 8) % WORDS)] ^
                                word[WARP * ((round - 14) % WORDS)] ^ *place, 1);
            unsigned int next = rotate(a, 5) + mix(round, b, c, d) + e + *place;
            e = d;
            d = c;
            c = rotate(b, 30);
            b = a;
            a = next;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }
    for (int i = 0; i < 5; i++)
        put_big_endian(&digest[4 * i], state[i]);
}

// The last window is shorter by `missing` bytes.
extern "C" __global__ void sha1_overlap(const unsigned char *input, int window, int offset, int threads, int missing,
                                        unsigned char *digests)
{
    __shared__ unsigned int message[SCRATCHPAD];
    int thread = blockIdx.x * blockDim.x + threadIdx.x;

    if (thread >= threads)
        return;
    if (thread == threads - 1)
        window -= missing;
    unsigned int *word = &message[threadIdx.x / WARP * (WARP * WORDS) + threadIdx.x % WARP];
    sha1((const unsigned int *)(input + thread * offset), word, window, &digests[thread * DIGEST]);
}
