/*
 * Keeps the elements that a predicate accepts: with one atomic per thread, per warp (ballot, inline PTX), and in order.
 */
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include <cooperative_groups.h>

using namespace cooperative_groups;

#define CHECK(x)                                                                              \
    do {                                                                                      \
        cudaError_t e = (x);                                                                  \
        if (e != cudaSuccess) {                                                               \
            fprintf(stderr, "%s failed (%s:%d): %s\n", #x, __FILE__, __LINE__, cudaGetErrorString(e)); \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

/* an event of a detector: the fields share a word */
union Event {
    struct {
        unsigned time : 20;
        unsigned channel : 8;
        unsigned kind : 3;
        unsigned valid : 1;
    } fields;
    std::uint32_t word;
};
static_assert(sizeof(Event) == 4, "an event is a word");

static __device__ __forceinline__ unsigned lane_id()
{
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

static __device__ __forceinline__ unsigned lanemask_lt()
{
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

static __device__ unsigned bits(unsigned word, unsigned first, unsigned count)
{
    unsigned r;
    asm("{\n\t"
        "bfe.u32 %0, %1, %2, %3;   // a brace in a comment: {\n\t"
        "}"
        : "=r"(r)
        : "r"(word), "r"(first), "r"(count));
    return r;
}

struct Wanted {
    unsigned first, last;      // channels
    __host__ __device__ bool operator()(Event e) const
    {
        return e.fields.valid && e.fields.channel >= first && e.fields.channel <= last;
    }
};

template <class Predicate>
__global__ void compact_threads(const Event *in, int n, Event *out, unsigned *count, Predicate keep)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && keep(in[i]))
        out[atomicAdd(count, 1u)] = in[i];
}

template <class Predicate>
__global__ void compact_warps(const Event *in, int n, Event *out, unsigned *count, Predicate keep)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Event e;
    e.word = 0;
    if (i < n) e = in[i];
    const bool mine = i < n && keep(e);
    assert(!mine || bits(e.word, 31, 1) == e.fields.valid);

    const unsigned votes = __ballot_sync(0xffffffffu, mine);
    unsigned base = 0;
    if (votes && lane_id() == (unsigned)__ffs(votes) - 1)
        base = atomicAdd(count, (unsigned)__popc(votes));
    if (votes) {
        base = __shfl_sync(0xffffffffu, base, __ffs(votes) - 1);
        if (mine) out[base + __popc(votes & lanemask_lt())] = e;
    }
}

template <class Predicate>
__global__ void compact_coalesced(const Event *in, int n, Event *out, unsigned *count, Predicate keep)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (keep(in[i])) {
            coalesced_group active = coalesced_threads();
            unsigned base = 0;
            if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
            out[active.shfl(base, 0) + active.thread_rank()] = in[i];
        }
}

/* A single block walks the array and keeps the order. */
template <class Predicate, int THREADS>
__global__ void __launch_bounds__(THREADS) compact_ordered(const Event *in, int n, Event *out, unsigned *count, Predicate keep)
{
    __shared__ unsigned warps[THREADS / 32];
    __shared__ unsigned done;
    if (threadIdx.x == 0) done = 0;
    for (int first = 0; first < n; first += THREADS) {
        const int i = first + threadIdx.x;
        const bool mine = i < n && keep(in[i]);
        const unsigned votes = __ballot_sync(~0u, mine), warp = threadIdx.x >> 5;
        if (lane_id() == 0) warps[warp] = __popc(votes);
        __syncthreads();
        unsigned at = done;
        for (unsigned w = 0; w < warp; w++) at += warps[w];
        if (mine) out[at + __popc(votes & lanemask_lt())] = in[i];
        int total = __syncthreads_count(mine);
        if (threadIdx.x == 0) done += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *count = done;
        if (done == 0) printf("nothing kept\n");
    }
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? std::atoi(argv[1]) : 10000;
    const Wanted wanted = { 40, 90 };
    std::vector<Event> events(n);
    std::uint32_t state = 2463534242u;
    for (auto &e : events) {
        state ^= state << 13; state ^= state >> 17; state ^= state << 5;
        e.word = state;
    }
    std::vector<std::uint32_t> expected;
    for (auto e : events)
        if (wanted(e)) expected.push_back(e.word);

    Event *d_in, *d_out;
    unsigned *d_count;
    CHECK(cudaMalloc((void **)&d_in, n * sizeof(Event)));
    CHECK(cudaMalloc((void **)&d_out, n * sizeof(Event)));
    CHECK(cudaMalloc((void **)&d_count, sizeof(unsigned)));
    CHECK(cudaMemcpy(d_in, events.data(), n * sizeof(Event), cudaMemcpyHostToDevice));

    int failures = 0;
    auto verify = [&](const char *name, bool ordered) {
        CHECK(cudaGetLastError());
        unsigned count;
        CHECK(cudaMemcpy(&count, d_count, sizeof count, cudaMemcpyDeviceToHost));
        std::vector<std::uint32_t> got(count), reference = expected;
        CHECK(cudaMemcpy(got.data(), d_out, count * sizeof(Event), cudaMemcpyDeviceToHost));
        if (!ordered) {
            std::sort(got.begin(), got.end());
            std::sort(reference.begin(), reference.end());
        }
        const bool good = got == reference;
        std::printf("%-10s %u of %d: %s\n", name, count, n, good ? "right" : "WRONG");
        failures += !good;
        CHECK(cudaMemset(d_count, 0, sizeof(unsigned)));
    };

    CHECK(cudaMemset(d_count, 0, sizeof(unsigned)));
    const int threads = 128, blocks = (n + threads - 1) / threads;
    compact_threads<<<blocks, threads>>>(d_in, n, d_out, d_count, wanted);
    verify("threads", false);
    compact_warps<<<blocks, threads>>>(d_in, n, d_out, d_count, wanted);
    verify("warps", false);
    compact_coalesced<Wanted><<<blocks / 2 + 1, threads>>>(d_in, n, d_out, d_count, wanted);
    verify("coalesced", false);
    compact_ordered<Wanted, 256><<<1, 256>>>(d_in, n, d_out, d_count, wanted);
    verify("ordered", true);

    // the launch that the <<<...>>> above stands for
    void (*kernel)(const Event *, int, Event *, unsigned *, Wanted) = compact_warps<Wanted>;
    int count = n;
    void *arguments[] = { &d_in, &count, &d_out, &d_count, (void *)&wanted };
    CHECK(cudaLaunchKernel((const void *)kernel, dim3(blocks), dim3(threads), arguments, 0, nullptr));
    verify("by pointer", false);

    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_count));
    return failures;
}
