// Integer and floating-point arithmetic for the PTX front end: 128-bit sums and products (carry chains, high halves),
// narrow types, shifts, funnel shifts, permutes, conversions with rounding, comparisons, predicate logic, vector loads.
// The same source compiled for the host prints the inputs and the expected results (see README.md).

#include <cmath>
#include <cstdint>
#include <cstdio>

#ifdef __CUDACC__
#define FUNCTION __device__ __forceinline__
#define funnel __funnelshift_l
#define permute __byte_perm
#define distance __usad
#define high_half __umul64hi
#else
#define FUNCTION
struct uchar4 { unsigned char x, y, z, w; };
struct short2 { short x, y; };
static uint32_t funnel(uint32_t low, uint32_t high, uint32_t by) {
    by &= 31;
    return by ? high << by | low >> (32 - by) : high;
}
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) result |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}
static uint32_t distance(uint32_t a, uint32_t b, uint32_t c) { return c + (a > b ? a - b : b - a); }
static uint64_t high_half(uint64_t a, uint64_t b) { return (unsigned __int128)a * b >> 64; }
#endif

typedef unsigned __int128 Wide;

FUNCTION uint64_t folded(Wide value) { return (uint64_t)value ^ (uint64_t)(value >> 64); }

FUNCTION uint64_t work(uint32_t a, uint32_t b, uint64_t c, uint64_t d, uchar4 q, short2 h, const int8_t *table) {
    Wide first = (Wide)c << 64 | d, second = (Wide)d << 64 | c * 3;
    uint64_t r = folded(first + second) ^ folded(first * (a | 1)) ^ folded(first - second);
    r += high_half(c, d) + funnel(a, b, a) + permute(a, b, b) + distance(a, b, 7);
    r ^= (uint64_t)((int64_t)c >> (d & 63)) + (c << (a & 63) | d >> (b & 63));
    r += (int64_t)(h.x * q.y - h.y / (q.x + 1) + (signed char)q.z % ((q.w & 7) + 1));
    r += (int64_t)table[a & 15] * table[b & 15] - (uint16_t)(a * 3 + 1) % (uint16_t)((b & 0xff) + 1);

    float f = (float)(int)a * 1e-5f, g = (float)b, e = (float)(int64_t)c, u = (float)d;
    double x = (double)(int64_t)c / (double)(d | 1), y = (double)d, z = (double)(int)a * (double)h.x;
    r += (int64_t)(int)fminf(fmaxf(f, -1e8f), 1e8f) + (int64_t)(g * 0.5f) + (int64_t)rintf(e * 1e-9f);
    r ^= (int64_t)floor(x) + (int64_t)ceil(z * 0.25) + (uint64_t)(y * 0.5) + (uint64_t)(u * 1e-9f);
    r += copysign(3.0, x) * (y != y ? 1 : 2) + (int)truncf(sqrtf(g)) + (int64_t)trunc(sqrt(y));

    r += (a < b) + 2 * (h.x < h.y) + 4 * ((int64_t)c < (int64_t)d) + 8 * (f < g && x < z) + (a & b ? 32 : 64);
    if (((a & 1) ^ (b > 77)) == ((c > d) | (q.x < q.y))) r = ~r;
    r += a >> (r >> 13 & 31) & ((1u << (b & 15)) - 1);
    return r + (f == g ? 1 : f > g ? 2 : 3);
}

FUNCTION uint64_t both(int thread, uint32_t a, uint32_t b, uint64_t c, uint64_t d) {
    int8_t table[16];
    for (int i = 0; i < 16; i++) table[i] = (int8_t)(i * 37 + thread);
    uchar4 q = {(unsigned char)a, (unsigned char)(a >> 8), (unsigned char)b, (unsigned char)(b >> 9)};
    short2 h = {(short)c, (short)d};
    return work(a, b, c, d, q, h, table);
}

#ifdef __CUDACC__
extern "C" __global__ void arithmetic(uint64_t *out, const uint2 *words, const ulonglong2 *longs) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint2 word = words[thread];
    ulonglong2 pair = longs[thread];
    out[thread] = both(thread, word.x, word.y, pair.x, pair.y);
}
#else
int main() {
    uint64_t random = 88172645463325252u;
    for (int t = 0; t < 128; t++) {
        uint64_t v[4];
        for (uint64_t &value : v) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            value = random >> random % 50;
        }
        uint32_t a = (uint32_t)v[0], b = (uint32_t)(v[1] >> 3);
        printf("%lu %lu %lu %lu %lu\n", (uint64_t)a, (uint64_t)b, v[2], v[3], both(t, a, b, v[2], v[3]));
    }
}
#endif
