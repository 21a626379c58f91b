// Copies and kernels of several streams overlap, and events time them.
#include <array>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>
#include "sample_common.h"

static const char *kUsage = R"(asyncPipeline [options]
  --streams=N   streams { 1 .. 16 }
  --n=N         elements per stream
  --reps=N      what `__global__ void work(...)` repeats
  launches look like work<<<grid, block, 0, stream>>>(data, factor);
)";

struct Settings {
    int streams = 4;
    int n = 1 << 12;
    int repetitions = 3;
};

__global__ void add_factor(int *g_data, int *factor, int times)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < times; i++)
        g_data[idx] += *factor;   // non-coalesced on purpose: { one word for all }
}

__device__ unsigned int launches = 0;

__global__ void mix(std::uint32_t *data, int n, std::uint32_t key)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        auto rotate = [](std::uint32_t v, int by) { return (v << by) | (v >> (32 - by)); };
        std::uint32_t v = data[i] ^ key;
#pragma unroll 3
        for (int round = 0; round < 3; round++)
            v = rotate(v * 0x9e3779b1u, 13) + key;
        data[i] = v;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        atomicInc(&launches, 0xffffffffu);
}

static std::uint32_t mix_host(std::uint32_t v, std::uint32_t key)
{
    v ^= key;
    for (int round = 0; round < 3; round++) {
        v *= 0x9e3779b1u;
        v = ((v << 13) | (v >> 19)) + key;
    }
    return v;
}

class Stream {
  public:
    Stream() { checkCudaErrors(cudaStreamCreate(&stream_)); }
    Stream(Stream &&other) noexcept : stream_(other.stream_) { other.stream_ = nullptr; }
    ~Stream()
    {
        if (stream_) cudaStreamDestroy(stream_);
    }
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_{};
};

static std::tuple<Settings, bool> parse(int argc, const char **argv)
{
    Settings s;
    s.streams = flag_int(argc, argv, "streams", s.streams);
    s.n = flag_int(argc, argv, "n", s.n);
    s.repetitions = flag_int(argc, argv, "reps", s.repetitions);
    bool good = s.streams >= 1 && s.streams <= 16 && s.n > 0 && !flag(argc, argv, "help");
    return {s, good};
}

void CUDART_CB done(cudaStream_t, cudaError_t status, void *what)
{
    printf("  stream %d finished: %s\n", *static_cast<int *>(what), cudaGetErrorString(status));
}

int main(int argc, const char **argv)
{
    auto [settings, good] = parse(argc, argv);
    if (!good) {
        std::cout << kUsage;
        return EXIT_WAIVED;
    }
    const int total = settings.streams * settings.n;
    const std::size_t bytes = settings.n * sizeof(std::uint32_t);
    constexpr int threads = 128;
    const int blocks = (settings.n + threads * 4 - 1) / (threads * 4);

    std::uint32_t *host, *device;
    checkCudaErrors(cudaHostAlloc(&host, total * sizeof *host, cudaHostAllocDefault));
    checkCudaErrors(cudaMalloc(&device, total * sizeof *device));
    std::vector<std::uint32_t> expected(total);
    for (int i = 0; i < total; i++) {
        host[i] = expected[i] = i * 2246822519u;
        for (int r = 0; r < settings.repetitions; r++) expected[i] = mix_host(expected[i], 17u + r);
    }

    std::vector<Stream> streams(settings.streams);
    std::vector<int> ids(settings.streams);
    std::array<cudaEvent_t, 2> events;
    for (auto &e : events) checkCudaErrors(cudaEventCreateWithFlags(&e, cudaEventBlockingSync));

    checkCudaErrors(cudaEventRecord(events[0]));
    for (int s = 0; s < settings.streams; s++)
        checkCudaErrors(cudaMemcpyAsync(device + s * settings.n, host + s * settings.n, bytes, cudaMemcpyHostToDevice, streams[s]));
    for (int r = 0; r < settings.repetitions; r++)
        for (int s = 0; s < settings.streams; s++)
            mix<<<blocks, threads, 0, streams[s]>>>(device + s * settings.n, settings.n, 17u + r);
    for (int s = 0; s < settings.streams; s++) {
        checkCudaErrors(cudaMemcpyAsync(host + s * settings.n, device + s * settings.n, bytes, cudaMemcpyDeviceToHost, streams[s]));
        ids[s] = s;
        checkCudaErrors(cudaStreamAddCallback(streams[s], done, &ids[s], 0));
    }
    checkCudaErrors(cudaEventRecord(events[1]));
    checkCudaErrors(cudaDeviceSynchronize());
    float ms = 0.0f;
    checkCudaErrors(cudaEventElapsedTime(&ms, events[0], events[1]));

    int wrong = 0;
    for (int i = 0; i < total; i++) wrong += host[i] != expected[i];

    // the older way: one array, a factor in device memory
    int *d_a, *d_c, factor = 5;
    checkCudaErrors(cudaMalloc((void **)&d_a, threads * sizeof(int)));
    checkCudaErrors(cudaMalloc((void **)&d_c, sizeof(int)));
    checkCudaErrors(cudaMemset(d_a, 0x0, threads * sizeof(int)));
    checkCudaErrors(cudaMemcpy(d_c, &factor, sizeof(int), cudaMemcpyHostToDevice));
    add_factor<<<1, threads>>>(d_a, d_c, settings.repetitions);
    std::vector<int> a(threads);
    checkCudaErrors(cudaMemcpy(a.data(), d_a, threads * sizeof(int), cudaMemcpyDeviceToHost));
    for (int v : a) wrong += v != factor * settings.repetitions;

    unsigned int counted;
    checkCudaErrors(cudaMemcpyFromSymbol(&counted, launches, sizeof counted));
    wrong += counted != static_cast<unsigned>(settings.streams * settings.repetitions);

    std::ostringstream line;
    line << std::fixed << std::setprecision(3) << ms << " ms with " << settings.streams << " streams; " << wrong << " errors";
    std::cout << line.str() << std::endl;
    for (auto e : events) cudaEventDestroy(e);
    cudaFree(device); cudaFree(d_a); cudaFree(d_c);
    cudaFreeHost(host);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
