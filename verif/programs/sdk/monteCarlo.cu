/* Monte Carlo estimates with functors, an own counter-based generator, and unified memory. */
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include "sample_common.h"

using Real = float;

// Several rounds of a multiply-and-swap bijection: each (key, counter) gives two independent words.
class Generator
{
public:
    __host__ __device__ explicit Generator(unsigned key, unsigned long long counter = 0)
        : m_key(key), m_counter(counter)
    {
    }

    __host__ __device__ unsigned next()
    {
        unsigned left = static_cast<unsigned>(m_counter), right = static_cast<unsigned>(m_counter >> 32) ^ m_key;
        unsigned key = m_key;
        for (int round = 0; round < s_rounds; ++round)
        {
#ifdef __CUDA_ARCH__
            unsigned high = __umulhi(left, 0xd256d193u);
#else
            unsigned high = static_cast<unsigned>((0xd256d193ull * left) >> 32);
#endif
            unsigned low = left * 0xd256d193u;
            left = high ^ key ^ right;
            right = low;
            key += 0x9e3779b9u;
        }
        ++m_counter;
        return left;
    }

    __host__ __device__ Real uniform() { return (next() >> 8) * (1.0f / 16777216.0f) + (0.5f / 16777216.0f); }

private:
    static constexpr int s_rounds = 10;
    unsigned m_key;
    unsigned long long m_counter;
};

struct QuarterCircle
{
    __host__ __device__ Real operator()(Generator& g) const
    {
        Real x = g.uniform(), y = g.uniform();
        return x * x + y * y < 1 ? 4 : 0;
    }
};

struct Normal
{
    __host__ __device__ static Real draw(Generator& g)
    {
        Real u = g.uniform(), v = g.uniform();
        return sqrtf(-2 * logf(u)) * cosf(6.283185307f * v);
    }
};

// A call at maturity under geometric Brownian motion; the random source is its base.
struct EuropeanCall : private Normal
{
    Real spot, strike, rate, volatility, years;

    EuropeanCall(Real s, Real k, Real r, Real v, Real t) : spot(s), strike(k), rate(r), volatility(v), years(t) {}

    __host__ __device__ Real operator()(Generator& g) const
    {
        Real end = spot * expf((rate - 0.5f * volatility * volatility) * years + volatility * sqrtf(years) * draw(g));
        Real gain = end - strike;
        return expf(-rate * years) * (gain > 0 ? gain : 0);
    }
};

template <class Functor, unsigned BlockSize>
__global__ void estimate(Functor functor, unsigned seed, unsigned samples, double* mean)
{
    static_assert((BlockSize & (BlockSize - 1)) == 0, "BlockSize is a power of two");
    __shared__ Real sums[BlockSize];

    const unsigned thread = blockIdx.x * BlockSize + threadIdx.x;
    Generator generator(seed ^ thread * 0x85ebca6bu);
    Real sum = 0;
    for (unsigned i = thread; i < samples; i += BlockSize * gridDim.x)
    {
        sum += functor(generator);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = BlockSize / 2; half > 0; half >>= 1)
    {
        if (threadIdx.x < half)
        {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
    {
        atomicAdd(mean, static_cast<double>(sums[0]) / samples);
#ifdef TRACE
        printf("block %u: %f\n", blockIdx.x, sums[0]);
#endif
    }
}

__managed__ unsigned finished;

__global__ void bump() { ++finished; }

template <class Functor> double run(Functor functor, unsigned samples)
{
    constexpr unsigned block = 128;
    int per_multiprocessor = 0, multiprocessors = 0;
    checkCudaErrors(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, estimate<Functor, block>, block, 0));
    checkCudaErrors(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    unsigned grid = (samples + block - 1) / block;
    if (grid > unsigned(per_multiprocessor * multiprocessors))
    {
        grid = per_multiprocessor * multiprocessors;
    }

    double* mean;
    checkCudaErrors(cudaMallocManaged(&mean, sizeof(double)));
    *mean = 0;
    estimate<Functor, block><<<grid, block>>>(functor, 20u, samples, mean);
    bump<<<1, 1>>>();
    getLastCudaError("estimate");
    checkCudaErrors(cudaDeviceSynchronize());
    double result = *mean;
    checkCudaErrors(cudaFree(mean));
    return result;
}

static double cumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

static double black_scholes(double s, double k, double r, double v, double t)
{
    double d1 = (std::log(s / k) + (r + 0.5 * v * v) * t) / (v * std::sqrt(t));
    return s * cumulative(d1) - k * std::exp(-r * t) * cumulative(d1 - v * std::sqrt(t));
}

int main(int argc, const char** argv)
{
    unsigned samples = flag_int(argc, argv, "sims", 40000);
    struct Experiment
    {
        std::function<double()> device;
        double expected, tolerance;
    };
    const std::map<std::string, Experiment> experiments = {
        {"pi", {[=] { return run(QuarterCircle{}, samples); }, 3.14159265, 8.0 / std::sqrt(samples)}},
        {"call", {[=] { return run(EuropeanCall(100, 105, 0.05f, 0.2f, 1), samples); },
                  black_scholes(100, 105, 0.05, 0.2, 1), 70.0 / std::sqrt(samples)}},
    };

    bool all = true;
    for (const auto& [name, experiment] : experiments)
    {
        double value = experiment.device();
        bool good = std::fabs(value - experiment.expected) < experiment.tolerance;
        printf("%-5s %.5f (expected %.5f +- %.5f) %s\n", name.c_str(), value, experiment.expected, experiment.tolerance,
               good ? "ok" : "FAILED");
        all = all && good;
    }
    all = all && finished == experiments.size();
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
