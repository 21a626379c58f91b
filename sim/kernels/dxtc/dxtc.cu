// Compression of an image to DXT1, after the SDK's dxtc: a CTA of 64 threads compresses a block of 4 x 4 pixels. It
// sorts the 16 colours along the line that fits them best and tries all ways of sharing them out, in that order, among
// the four (or three) colours of a palette. Colours are whole numbers up to 255 here, not fractions of 1, so that most
// products and sums are exact; the others say whether they are fused. Thus every result can be foretold.
#define THREADS 64
#define PIXELS 16
#define SPLITS 992       // ways of sharing out, ...
#define SPLITS_OF_3 160  // ... of which the first need no fourth colour
#define LANES 0xffffu    // of those that have a pixel
#define ITERATIONS 8     // towards the line's direction

// By the two bits of a pixel, which choose a palette's colour: its share of the first of the two end points in ninths
// or quarters, and the squares and the product of both shares, a byte each (first, second, product).
__constant__ float share_of_4[4] = {9.0f, 0.0f, 6.0f, 3.0f};
__constant__ float share_of_3[4] = {4.0f, 0.0f, 2.0f, 2.0f};
__constant__ int products_of_4[4] = {0x090000, 0x000900, 0x040102, 0x010402};
__constant__ int products_of_3[4] = {0x040000, 0x000400, 0x010101, 0x010101};

struct Fit {
    float error;  // less the same for all ways of sharing out
    int first, second;  // the end points, 5, 6 and 5 bits
    unsigned int split;
};

__device__ static float3 operator+(float3 a, float3 b)
{
    return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}

__device__ static float dot(float ax, float ay, float az, float3 b)
{
    return fmaf(az, b.z, fmaf(ay, b.y, __fmul_rn(ax, b.x)));
}

// The sum of all 16 in each of them.
template <class T> __device__ static void sum_up(T *values)
{
    for (int n = PIXELS / 2; n > 0; n /= 2) {
        T sum = values[threadIdx.x] + values[threadIdx.x ^ n];
        __syncwarp(LANES);
        values[threadIdx.x] = sum;
        __syncwarp(LANES);
    }
}

// The direction of the line: the covariance's first eigenvector by the power method.
__device__ static float3 direction(const float3 *colours, float3 sum)
{
    __shared__ float covariance[6][PIXELS];
    int i = threadIdx.x;

    float x = PIXELS * colours[i].x - sum.x;
    float y = PIXELS * colours[i].y - sum.y;
    float z = PIXELS * colours[i].z - sum.z;
    covariance[0][i] = __fmul_rn(x, x);
    covariance[1][i] = __fmul_rn(x, y);
    covariance[2][i] = __fmul_rn(x, z);
    covariance[3][i] = __fmul_rn(y, y);
    covariance[4][i] = __fmul_rn(y, z);
    covariance[5][i] = __fmul_rn(z, z);
    __syncwarp(LANES);
    for (int k = 0; k < 6; k++)
        sum_up(covariance[k]);

    float3 line = make_float3(1.0f, 1.0f, 1.0f);
    for (int k = 0; k < ITERATIONS; k++) {
        x = dot(covariance[0][0], covariance[1][0], covariance[2][0], line);
        y = dot(covariance[1][0], covariance[3][0], covariance[4][0], line);
        z = dot(covariance[2][0], covariance[4][0], covariance[5][0], line);
        float largest = fmaxf(fmaxf(x, y), z);
        float scale = largest == 0.0f ? 0.0f : 1.0f / largest;
        line = make_float3(x * scale, y * scale, z * scale);
    }
    return line;
}

// Sixteen threads load the block and sort it; place[i] is where pixel i has gone.
__device__ static void load(const unsigned int *image, float3 *colours, float3 *sums, int *place)
{
    __shared__ float along[PIXELS];
    int i = threadIdx.x;

    if (i < PIXELS) {
        unsigned int pixel = image[PIXELS * blockIdx.x + i];
        float3 mine = make_float3(pixel & 0xff, pixel >> 8 & 0xff, pixel >> 16 & 0xff);
        colours[i] = mine;
        sums[i] = mine;
        __syncwarp(LANES);
        sum_up(sums);
        float3 line = direction(colours, sums[0]);
        along[i] = dot(line.x, line.y, line.z, mine);
        __syncwarp(LANES);
        int rank = 0;
        for (int k = 0; k < PIXELS; k++)
            rank += along[k] < along[i] || (along[k] == along[i] && k < i);
        place[i] = rank;
        colours[rank] = mine;
    }
}

// The nearest number of some bits, and what a decoder makes of it.
__device__ static int quantise(float &value, int bits)
{
    int largest = (1 << bits) - 1;
    int number = rintf(fminf(fmaxf(value, 0.0f), 255.0f) * ((float)largest / 255.0f));
    value = number << (8 - bits) | number >> (2 * bits - 8);
    return number;
}

// Least squares in a channel: the end points for the sums of shares, and their error, added to what there is.
__device__ static void solve(float first_sum, float second_sum, float first2, float second2, float product,
                             float factor, int bits, int &first, int &second, float &error)
{
    float a = (first_sum * second2 - second_sum * product) * factor;
    float b = (second_sum * first2 - first_sum * product) * factor;
    first = first << bits | quantise(a, bits);
    second = second << bits | quantise(b, bits);
    error = fmaf(a, a * first2 + b * product - 2.0f * first_sum, error);
    error = fmaf(b, b * second2 + a * product - 2.0f * second_sum, error);
}

__device__ static Fit evaluate(const float3 *colours, float3 sum, unsigned int split, const float *share,
                               const int *products, float whole)
{
    float x = 0.0f, y = 0.0f, z = 0.0f;
    int sums = 0;
#pragma unroll 4  // no more, or the colours stay in registers
    for (int i = 0; i < PIXELS; i++) {
        int choice = split >> (2 * i) & 3;
        x += share[choice] * colours[i].x;
        y += share[choice] * colours[i].y;
        z += share[choice] * colours[i].z;
        sums += products[choice];
    }
    float first2 = sums >> 16;
    float second2 = sums >> 8 & 0xff;
    float product = sums & 0xff;
    float factor = 1.0f / (first2 * second2 - product * product);

    Fit fit = {0.0f, 0, 0, split};
    solve(x, whole * sum.x - x, first2, second2, product, factor, 5, fit.first, fit.second, fit.error);
    solve(y, whole * sum.y - y, first2, second2, product, factor, 6, fit.first, fit.second, fit.error);
    solve(z, whole * sum.z - z, first2, second2, product, factor, 5, fit.first, fit.second, fit.error);
    fit.error = __fmul_rn(fit.error, 1.0f / whole);
    return fit;
}

__device__ static void exchange(Fit &fit, unsigned int flipped)
{
    int first = fit.first;
    fit.first = fit.second;
    fit.second = first;
    fit.split ^= flipped;
}

// The thread's best. A palette has four colours if its first end point is the larger number, else three.
__device__ static Fit best_fit(const float3 *colours, float3 sum, const unsigned int *splits)
{
    __shared__ unsigned int splits_of_3[SPLITS_OF_3];

    Fit best = {INFINITY, 0, 0, 0};
    for (int k = threadIdx.x; k < SPLITS; k += THREADS) {
        unsigned int split = splits[k];
        if (k < SPLITS_OF_3)
            splits_of_3[k] = split;
        Fit fit = evaluate(colours, sum, split, share_of_4, products_of_4, 9.0f);
        if (fit.error < best.error)
            best = fit;
    }
    if (best.first < best.second)
        exchange(best, 0x55555555u);
    __syncthreads();

    for (int k = threadIdx.x; k < SPLITS_OF_3; k += THREADS) {
        Fit fit = evaluate(colours, sum, splits_of_3[k], share_of_3, products_of_3, 4.0f);
        if (fit.error < best.error) {
            best = fit;
            if (best.first > best.second)
                exchange(best, ~best.split >> 1 & 0x55555555u);
        }
    }
    return best;
}

// The thread with the least error.
__device__ static int least(float error)
{
    __shared__ float errors[THREADS];
    __shared__ int threads[THREADS];
    int i = threadIdx.x;

    errors[i] = error;
    threads[i] = i;
    for (int n = THREADS / 2; n > 0; n /= 2) {
        __syncthreads();
        if (i < n && errors[i + n] < errors[i]) {
            errors[i] = errors[i + n];
            threads[i] = threads[i + n];
        }
    }
    __syncthreads();
    return threads[0];
}

// `image` has the pixels of a block side by side, red in the lowest byte.
extern "C" __global__ void compress(const unsigned int *splits, const unsigned int *image, uint2 *result)
{
    __shared__ float3 colours[PIXELS];
    __shared__ float3 sums[PIXELS];
    __shared__ int place[PIXELS];

    load(image, colours, sums, place);
    __syncthreads();
    Fit fit = best_fit(colours, sums[0], splits);
    if (threadIdx.x == least(fit.error)) {
        unsigned int choices = 0;
        if (fit.first != fit.second)
            for (int i = 0; i < PIXELS; i++)
                choices |= (fit.split >> (2 * place[i]) & 3) << (2 * i);
        result[blockIdx.x] = make_uint2(fit.second << 16 | fit.first, choices);
    }
}
