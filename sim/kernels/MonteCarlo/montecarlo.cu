// Prices of European call options by Monte Carlo, after the SDK's MonteCarlo with one CTA per option: 256 threads take
// turns at the samples, which all options share, and add up the payoffs and their squares by a tree in the scratchpad.
#define THREADS 256
#define MAX_OPTIONS 2048

struct Option {
    float price, strike, drift, deviation;  // the last two over the option's whole time
};

struct Sums {
    float payoff, square;
};

__constant__ Option options[MAX_OPTIONS];

extern "C" __global__ void MonteCarloOneBlockPerOption(Sums *result, const float *samples, int paths)
{
    __shared__ float payoffs[THREADS];
    __shared__ float squares[THREADS];
    Option option = options[blockIdx.x];

#pragma unroll 1
    for (int k = threadIdx.x; k < THREADS; k += blockDim.x) {
        Sums sum = {0.0f, 0.0f};
#pragma unroll 1
        for (int i = k; i < paths; i += THREADS) {
            float end = option.price * __expf(option.drift + option.deviation * samples[i]);
            float payoff = fmaxf(end - option.strike, 0.0f);
            sum.payoff += payoff;
            sum.square += payoff * payoff;
        }
        payoffs[k] = sum.payoff;
        squares[k] = sum.square;
    }
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        __syncthreads();
#pragma unroll 1
        for (int k = threadIdx.x; k < half; k += blockDim.x) {
            payoffs[k] += payoffs[k + half];
            squares[k] += squares[k + half];
        }
    }
    if (threadIdx.x == 0)
        result[blockIdx.x] = {payoffs[0], squares[0]};
}
