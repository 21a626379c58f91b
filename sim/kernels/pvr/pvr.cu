// Pages by their views, after Page View Rank of the MapReduce framework Mars: a thread reads a record "URL, tab, views,
// newline" byte by byte and emits its views with its number; then the pairs are sorted, those of more views first. The
// sort is bitonic: pairs that are near each other are compared in the scratchpad, others by a launch per distance.
#define THREADS 128
#define TILE (2 * THREADS)  // pairs in a CTA's scratchpad

// A pair is one word: the views, then the record's number, inverted so that of equals the first comes first. Behind the
// records there are pairs of no views, up to a power of two.
extern "C" __global__ void map_emit(const char *text, const int *begins, int records, unsigned long long *pairs)
{
    int record = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int views = 0;

    if (record < records) {
        const char *at = text + begins[record];
        while (*at != '\t')
            at++;
        for (char c = *++at; c != '\n'; c = *++at)
            views = 10 * views + (c - '0');
    }
    pairs[record] = (unsigned long long)views << 32 | ~(unsigned int)record;
}

__device__ static void exchange(unsigned long long *low, int distance, bool rising)
{
    unsigned long long first = low[0];
    unsigned long long second = low[distance];
    if ((first > second) == rising) {
        low[0] = second;
        low[distance] = first;
    }
}

// The lower of the two pairs that a thread compares: threads have every other stretch of `distance` pairs.
__device__ static int lower(int thread, int distance)
{
    return 2 * thread - (thread & (distance - 1));
}

// One step of a merge, at one distance. It makes runs of `run` pairs, falling and rising by turns, out of their halves.
extern "C" __global__ void sort_step(unsigned long long *pairs, int run, int distance)
{
    int at = lower(blockIdx.x * THREADS + threadIdx.x, distance);
    exchange(&pairs[at], distance, (at & run) != 0);
}

// All steps within a tile, of runs from `run` to `last`.
extern "C" __global__ void sort_tiles(unsigned long long *pairs, int run, int last)
{
    __shared__ unsigned long long tile[TILE];
    int first = blockIdx.x * TILE;

    for (int i = threadIdx.x; i < TILE; i += THREADS)
        tile[i] = pairs[first + i];
    for (; run <= last; run *= 2)
        for (int distance = min(run, TILE) / 2; distance > 0; distance /= 2) {
            int at = lower(threadIdx.x, distance);
            __syncthreads();
            exchange(&tile[at], distance, ((first + at) & run) != 0);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += THREADS)
        pairs[first + i] = tile[i];
}
