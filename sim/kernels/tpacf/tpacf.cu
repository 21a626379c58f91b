// Histograms of the angles between points on a sphere (two-point angular correlation), after Parboil's tpacf. There is
// a set of observed points and `sets` of random ones. CTA 0 takes the pairs within the observed set, the next ones those
// within a random set each, the others the pairs of an observed and a random point. Two lanes share a histogram.
#define BINS 20
#define MAX_THREADS 256
#define SHARING 2  // lanes
#define HISTOGRAMS (MAX_THREADS / SHARING)

__constant__ float bounds[BINS + 1];  // cosines of the angles between bins, the largest first

// The bin of a cosine, by bisection; that of the bounds themselves is the one of larger angles.
__device__ static unsigned int bin_of(float cosine)
{
    unsigned int low = 0;
    unsigned int high = BINS;

    while (high > low + 1) {
        unsigned int middle = (low + high) / 2;
        if (cosine >= bounds[middle])
            high = middle;
        else
            low = middle;
    }
    return low;
}

// Coordinates of all sets in a row, the observed one first.
extern "C" __global__ void gen_hists(unsigned int *histograms, const float *xs, const float *ys, const float *zs,
                                     int sets, int points)
{
    __shared__ float tile_x[MAX_THREADS];
    __shared__ float tile_y[MAX_THREADS];
    __shared__ float tile_z[MAX_THREADS];
    __shared__ unsigned int counts[BINS][HISTOGRAMS];
    int tid = threadIdx.x;
    int threads = blockDim.x;
    bool within = blockIdx.x <= sets;
    int first = within ? blockIdx.x * points : 0;
    int second = within ? first : (blockIdx.x - sets) * points;

#pragma unroll 1
    for (int i = tid; i < BINS * HISTOGRAMS; i += threads)
        counts[i / HISTOGRAMS][i % HISTOGRAMS] = 0;

    for (int begin = 0; begin < points; begin += threads) {
        int tile = min(threads, points - begin);
        __syncthreads();
        if (tid < tile) {
            tile_x[tid] = xs[first + begin + tid];
            tile_y[tid] = ys[first + begin + tid];
            tile_z[tid] = zs[first + begin + tid];
        }
        __syncthreads();
        for (int own = (within ? begin : 0) + tid; own < points; own += threads) {
            float x = xs[second + own];
            float y = ys[second + own];
            float z = zs[second + own];
#pragma unroll 1
            for (int k = 0; k < tile; k++) {
                if (within && own <= begin + k)
                    continue;
                float cosine = __fmaf_rn(z, tile_z[k], __fmaf_rn(y, tile_y[k], __fmul_rn(x, tile_x[k])));
                if (cosine < bounds[0] && cosine >= bounds[BINS])
                    atomicAdd(&counts[bin_of(cosine)][tid / SHARING], 1u);
            }
        }
    }

    for (int half = HISTOGRAMS / 2; half > 0; half /= 2) {
        __syncthreads();
#pragma unroll 1
        for (int i = tid; i < BINS * half; i += threads)
            counts[i / half][i % half] += counts[i / half][i % half + half];
    }
    __syncthreads();
#pragma unroll 1
    for (int bin = tid; bin < BINS; bin += threads)
        histograms[blockIdx.x * BINS + bin] = counts[bin][0];
}
