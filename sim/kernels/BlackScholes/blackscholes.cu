// Prices of European call and put options by the Black-Scholes formula, after the SDK's BlackScholes, with its fast
// intrinsics; a grid-stride loop over the options.
#define RISK_FREE 0.02f
#define VOLATILITY 0.30f

// Cumulative normal distribution, polynomial of Abramowitz and Stegun 26.2.17.
__device__ static float cumulative_normal(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float series = k * (0.31938153f + k * (-0.356563782f +
                   k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228040143267793994605993438f * __expf(-0.5f * d * d) * series;
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void BlackScholesGPU(float *call, float *put, const float *price, const float *strike,
                                           const float *years, int options)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < options; i += blockDim.x * gridDim.x) {
        float s = price[i];
        float x = strike[i];
        float t = years[i];
        float root = sqrtf(t);
        float d1 = (__logf(s / x) + (RISK_FREE + 0.5f * VOLATILITY * VOLATILITY) * t) / (VOLATILITY * root);
        float d2 = d1 - VOLATILITY * root;
        float n1 = cumulative_normal(d1);
        float n2 = cumulative_normal(d2);
        float discounted = x * __expf(-RISK_FREE * t);

        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}
