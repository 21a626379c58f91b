// Greeks of a portfolio of swaptions by Monte Carlo in the LIBOR market model, after M. Giles's program, the LIB of
// GPGPU-Sim's benchmarks. A thread follows a path: forwards in time, keeping every rate of every step in local memory,
// then the adjoint of the same steps backwards. All paths have the same shocks, as in the original's test. No loop is
// unrolled, which keeps it within the registers of Jatala table 2.
#define RATES 80      // at most
#define STEPS 40      // at most, and the rates that are left after them
#define SWAPTIONS 15  // at most
#define NOTIONAL 100.0f

// Of the steps, the first `simulated` are; all of them, but in a part of the work.
__constant__ int rates, steps, simulated, swaptions, maturity[SWAPTIONS];
__constant__ float interval, swap_rate[SWAPTIONS], volatility[RATES];

// All of a thread's local memory, in one variable so that it takes one address. Row n of `history` has the rates before
// step n.
struct Path {
    float rate[RATES], shock[RATES], history[RATES * (STEPS + 1)];
    float bond[STEPS], annuity[STEPS], bond_adjoint[STEPS], annuity_adjoint[STEPS];
};

__device__ static void forward(Path &path)
{
#pragma unroll 1
    for (int i = 0; i < rates; i++)
        path.history[i] = path.rate[i];

#pragma unroll 1
    for (int n = 0; n < simulated; n++) {
        float diffusion = sqrtf(interval) * path.shock[n];
        float drift = 0.0f;
#pragma unroll 1
        for (int i = n + 1; i < rates; i++) {
            float sigma = volatility[i - n - 1];
            float variance = interval * sigma;
            drift += __fdividef(variance * path.rate[i], 1.0f + interval * path.rate[i]);
            path.rate[i] *= __expf(variance * drift + sigma * (diffusion - 0.5f * variance));
            path.history[i + (n + 1) * rates] = path.rate[i];
        }
    }
}

// The portfolio's value; puts its derivatives by the rates in their place.
__device__ static float portfolio(Path &path)
{
    int left = rates - steps;

    float b = 1.0f;
    float sum = 0.0f;
#pragma unroll 1
    for (int m = 0; m < left; m++) {
        b = __fdividef(b, 1.0f + interval * path.rate[m + steps]);
        sum += interval * b;
        path.bond[m] = b;
        path.annuity[m] = sum;
    }

#pragma unroll 1
    for (int m = 0; m < left; m++) {
        path.bond_adjoint[m] = 0.0f;
        path.annuity_adjoint[m] = 0.0f;
    }
    float value = 0.0f;
#pragma unroll 1
    for (int k = 0; k < swaptions; k++) {
        int m = maturity[k] - 1;
        float swap = path.bond[m] + swap_rate[k] * path.annuity[m] - 1.0f;
        if (swap < 0.0f) {
            value -= NOTIONAL * swap;
            path.annuity_adjoint[m] -= NOTIONAL * swap_rate[k];
            path.bond_adjoint[m] -= NOTIONAL;
        }
    }

#pragma unroll 1
    for (int m = left - 1; m >= 0; m--) {
        float growth = 1.0f + interval * path.rate[m + steps];
        path.bond_adjoint[m] += interval * path.annuity_adjoint[m];
        if (m > 0) {
            path.annuity_adjoint[m - 1] += path.annuity_adjoint[m];
            path.bond_adjoint[m - 1] += __fdividef(path.bond_adjoint[m], growth);
        }
        path.rate[m + steps] = -path.bond_adjoint[m] * path.bond[m] * __fdividef(interval, growth);
    }

    float discount = 1.0f;
#pragma unroll 1
    for (int n = 0; n < steps; n++)
        discount = discount / (1.0f + interval * path.rate[n]);
    value *= discount;
#pragma unroll 1
    for (int n = 0; n < steps; n++)
        path.rate[n] = -value * interval / (1.0f + interval * path.rate[n]);
#pragma unroll 1
    for (int n = steps; n < rates; n++)
        path.rate[n] *= discount;
    return value;
}

// From the derivatives by the rates after the last step to those before the first.
__device__ static void backward(Path &path)
{
#pragma unroll 1
    for (int n = simulated - 1; n >= 0; n--) {
        float sum = 0.0f;
#pragma unroll 1
        for (int i = rates - 1; i > n; i--) {
            float sigma = volatility[i - n - 1];
            float before = path.history[i + n * rates];
            float after = path.history[i + (n + 1) * rates];
            sum += sigma * after * path.rate[i];
            float factor = __fdividef(interval, 1.0f + interval * before);
            path.rate[i] = path.rate[i] * __fdividef(after, before) + sum * sigma * factor * factor;
        }
    }
}

extern "C" __global__ void Pathcalc_Portfolio_KernelGPU(float *value, float *sensitivity, int paths)
{
    Path path;

#pragma unroll 1
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < paths; k += blockDim.x * gridDim.x) {
#pragma unroll 1
        for (int i = 0; i < rates; i++) {
            path.shock[i] = 0.3f;
            path.rate[i] = 0.05f;
        }
        forward(path);
        value[k] = portfolio(path);
        backward(path);
        sensitivity[k] = path.rate[rates - 1];
    }
}
