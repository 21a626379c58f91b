// Fourier transforms of many complex signals at once, after Parboil's fft: a launch per step of radix 2, from one array
// to the other, in the order that leaves the result sorted (Stockham). A CTA has a signal, a thread two of its points.

// `done` points are transformed already: a power of two.
extern "C" __global__ void fft_step(int done, const float2 *from, float2 *to, int points)
{
    int half = points / 2;
    int place = threadIdx.x & (done - 1);
    from += blockIdx.x * points + threadIdx.x;
    to += blockIdx.x * points + 2 * threadIdx.x - place;

    float sine, cosine;
    __sincosf(-3.14159265f * place / done, &sine, &cosine);
    float2 even = from[0];
    float2 odd = from[half];
    float2 turned = make_float2(odd.x * cosine - odd.y * sine, odd.x * sine + odd.y * cosine);
    to[0] = make_float2(even.x + turned.x, even.y + turned.y);
    to[done] = make_float2(even.x - turned.x, even.y - turned.y);
}
