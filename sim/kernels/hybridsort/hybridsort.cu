// Sorting in buckets, then by merging, after Rodinia's hybridsort: a histogram, from which the host chooses the buckets'
// bounds; elements go to their buckets; each bucket is sorted as runs of float4 that double from pass to pass.
#define BINS 1024
#define BUCKETS 1024
#define HISTOGRAM_WARPS 3
#define BUCKET_BLOCK 32  // one warp
#define LANE_BITS 5
#define NUMBER_MASK ((1u << (32 - LANE_BITS)) - 1)

__constant__ int bucket_start[BUCKETS + 1];  // in float4, of the buckets with their padding
__constant__ int sorted_start[BUCKETS + 1];  // in elements, without it

// The next number of a counter of a warp. Lanes that want the same counter all write; the one whose value is found there
// afterwards has the number, the others try again.
__device__ static unsigned next_number(volatile unsigned *counter)
{
    unsigned lane = threadIdx.x % 32 << (32 - LANE_BITS);
    unsigned number, written;

    do {
        number = *counter & NUMBER_MASK;
        written = lane | (number + 1);
        *counter = written;
    } while (*counter != written);
    return number;
}

// Each warp counts on its own; then the CTA adds up.
extern "C" __global__ void histogram(const float *values, int count, float least, float bins_per_unit, unsigned *bins)
{
    __shared__ volatile unsigned counters[HISTOGRAM_WARPS][BINS];
    int first = blockIdx.x * blockDim.x + threadIdx.x;

    for (int bin = threadIdx.x; bin < HISTOGRAM_WARPS * BINS; bin += blockDim.x)
        counters[0][bin] = 0;
    __syncthreads();
    for (int at = first; at < count; at += gridDim.x * blockDim.x) {
        int bin = (values[at] - least) * bins_per_unit;
        next_number(&counters[threadIdx.x / 32][min(bin, BINS - 1)]);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned sum = 0;
        for (int warp = 0; warp < HISTOGRAM_WARPS; warp++)
            sum += counters[warp][bin] & NUMBER_MASK;
        atomicAdd(&bins[bin], sum);
    }
}

// The bucket of each element, by binary search among the pivots, and its number among those that this CTA has put there.
extern "C" __global__ void bucket_count(const float *values, int count, int per_cta, cudaTextureObject_t pivots,
                                        unsigned *places, unsigned *counts)
{
    __shared__ volatile unsigned counters[BUCKETS];
    int start = blockIdx.x * per_cta;

    for (int bucket = threadIdx.x; bucket < BUCKETS; bucket += blockDim.x)
        counters[bucket] = 0;
    __syncthreads();
    for (int at = start + threadIdx.x; at < min(start + per_cta, count); at += blockDim.x) {
        float value = values[at];
        int bucket = BUCKETS / 2 - 1;
        float pivot = tex1Dfetch<float>(pivots, bucket);
        for (int jump = BUCKETS / 4; jump >= 1; jump /= 2) {
            bucket = value < pivot ? bucket - jump : bucket + jump;
            pivot = tex1Dfetch<float>(pivots, bucket);
        }
        if (value >= pivot)
            bucket++;
        places[at] = next_number(&counters[bucket]) * BUCKETS + bucket;
    }
    __syncthreads();
    for (int bucket = threadIdx.x; bucket < BUCKETS; bucket += blockDim.x)
        counts[blockIdx.x * BUCKETS + bucket] = counters[bucket] & NUMBER_MASK;
}

// Where each CTA's elements begin in their buckets, and how many a bucket has. A thread per bucket.
extern "C" __global__ void bucket_prefix(unsigned *counts, unsigned *sizes, int ctas)
{
    int bucket = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;

    for (int cta = 0; cta < ctas; cta++) {
        unsigned own = counts[cta * BUCKETS + bucket];
        counts[cta * BUCKETS + bucket] = sum;
        sum += own;
    }
    sizes[bucket] = sum;
}

extern "C" __global__ void bucket_scatter(const float *values, int count, int per_cta, const unsigned *places,
                                          const unsigned *counts, float *buckets)
{
    __shared__ unsigned starts[BUCKETS];
    int start = blockIdx.x * per_cta;

    for (int bucket = threadIdx.x; bucket < BUCKETS; bucket += blockDim.x)
        starts[bucket] = 4 * bucket_start[bucket] + counts[blockIdx.x * BUCKETS + bucket];
    __syncthreads();
    for (int at = start + threadIdx.x; at < min(start + per_cta, count); at += blockDim.x) {
        unsigned place = places[at];
        buckets[starts[place % BUCKETS] + place / BUCKETS] = values[at];
    }
}

__device__ static float4 ordered(float4 v)
{
    float least = fminf(v.x, v.y), low = fmaxf(v.x, v.y), high = fminf(v.z, v.w), most = fmaxf(v.z, v.w);

    return make_float4(fminf(least, high), fminf(fmaxf(least, high), fminf(low, most)),
                       fmaxf(fmaxf(least, high), fminf(low, most)), fmaxf(low, most));
}

// The four least and the four greatest of two sorted ones, which form a sequence that rises and falls.
__device__ static float4 lower(float4 a, float4 b)
{
    return make_float4(fminf(a.x, b.w), fminf(a.y, b.z), fminf(a.z, b.y), fminf(a.w, b.x));
}

__device__ static float4 upper(float4 a, float4 b)
{
    return make_float4(fmaxf(a.x, b.w), fmaxf(a.y, b.z), fmaxf(a.z, b.y), fmaxf(a.w, b.x));
}

extern "C" __global__ void sort_fours(const float4 *from, float4 *to, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;

    if (at < count)
        to[at] = ordered(from[at]);
}

// Each thread merges two neighbouring runs of `run` float4 of one bucket; `pairs` threads have a bucket.
extern "C" __global__ void merge_pass(cudaTextureObject_t from, float4 *to, int run, int pairs)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int bucket = thread / pairs;

    if (bucket >= BUCKETS)
        return;
    int start = bucket_start[bucket] + thread % pairs * 2 * run;
    int end = bucket_start[bucket + 1];
    if (start >= end)
        return;
    if (start + run >= end) {  // without a partner
        for (int at = start; at < end; at++)
            to[at] = tex1Dfetch<float4>(from, at);
        return;
    }
    int a = start + 1, a_end = start + run;
    int b = a_end + 1, b_end = min(a_end + run, end);
    int out = start;
    float4 kept = tex1Dfetch<float4>(from, start);
    float4 next = tex1Dfetch<float4>(from, a_end);

    // The lower half of what was kept and what comes next is less than all that is to come, if that comes from the run
    // whose head is less.
    while (true) {
        to[out++] = ordered(lower(kept, next));
        kept = ordered(upper(kept, next));
        if (a == a_end && b == b_end)
            break;
        bool from_a = b == b_end;
        if (a < a_end && b < b_end)
            from_a = tex1Dfetch<float4>(from, a).x < tex1Dfetch<float4>(from, b).x;
        next = tex1Dfetch<float4>(from, from_a ? a++ : b++);
    }
    to[out] = kept;
}

extern "C" __global__ void merge_pack(const float *from, float *to)
{
    int size = sorted_start[blockIdx.x + 1] - sorted_start[blockIdx.x];

    for (int at = threadIdx.x; at < size; at += blockDim.x)
        to[sorted_start[blockIdx.x] + at] = from[4 * bucket_start[blockIdx.x] + at];
}
