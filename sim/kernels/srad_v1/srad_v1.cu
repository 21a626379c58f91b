// Speckle-reducing anisotropic diffusion, after Rodinia's srad_v1: a thread per pixel, and a kernel for each part. The
// image stands in memory column by column. Beyond the rim it goes on as at the rim: tables say which row or column is
// next to which.
#define THREADS 512

// From grey levels to the intensities that diffuse, and back.
extern "C" __global__ void extract(int pixels, float *image)
{
    int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels)
        image[pixel] = expf(image[pixel] / 255.0f);
}

extern "C" __global__ void compress(int pixels, float *image)
{
    int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels)
        image[pixel] = logf(image[pixel]) * 255.0f;
}

// What is to be summed: intensities and their squares.
extern "C" __global__ void prepare(int pixels, const float *image, float *sums, float *squares)
{
    int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels) {
        sums[pixel] = image[pixel];
        squares[pixel] = image[pixel] * image[pixel];
    }
}

// Sums of THREADS values that stand `stride` apart, in the place of the first. Pairs, then pairs of pairs; of a last CTA
// with fewer values, the greatest power of two is summed so, and a single thread adds the rest.
extern "C" __global__ void reduce(int values, int stride, float *sums, float *squares)
{
    __shared__ float sum[THREADS];
    __shared__ float square[THREADS];
    int thread = threadIdx.x;
    int value = blockIdx.x * THREADS + thread;
    int own = min(values - (int)blockIdx.x * THREADS, THREADS);

    if (value < values) {
        sum[thread] = sums[value * stride];
        square[thread] = squares[value * stride];
    }
    __syncthreads();
    int paired = 1 << (31 - __clz(own));
    for (int width = 2; width <= paired; width *= 2) {
        if (thread < paired && (thread + 1) % width == 0) {
            sum[thread] += sum[thread - width / 2];
            square[thread] += square[thread - width / 2];
        }
        __syncthreads();
    }
    if (thread == paired - 1) {
        float total = sum[thread];
        float total_squares = square[thread];
#pragma unroll 1
        for (int i = paired; i < own; i++) {
            total += sum[i];
            total_squares += square[i];
        }
        sums[blockIdx.x * THREADS * stride] = total;
        squares[blockIdx.x * THREADS * stride] = total_squares;
    }
}

// The difference to the four neighbours, and how much may flow.
extern "C" __global__ void srad(int rows, int pixels, const int *north_row, const int *south_row,
                                const int *west_column, const int *east_column, float *north_slope, float *south_slope,
                                float *west_slope, float *east_slope, float q0_squared, float *coefficient,
                                const float *image)
{
    int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= pixels)
        return;
    int row = pixel % rows;
    int column = pixel / rows;

    float centre = image[pixel];
    float n = image[north_row[row] + rows * column] - centre;
    float s = image[south_row[row] + rows * column] - centre;
    float w = image[row + rows * west_column[column]] - centre;
    float e = image[row + rows * east_column[column]] - centre;

    float gradient_squared = (n * n + s * s + w * w + e * e) / (centre * centre);
    float laplacian = (n + s + w + e) / centre;
    float numerator = 0.5f * gradient_squared - (1.0f / 16.0f) * (laplacian * laplacian);
    float denominator = 1.0f + 0.25f * laplacian;
    float q_squared = numerator / (denominator * denominator);
    float c = 1.0f / (1.0f + (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared)));

    north_slope[pixel] = n;
    south_slope[pixel] = s;
    west_slope[pixel] = w;
    east_slope[pixel] = e;
    coefficient[pixel] = c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
}

// What flows to and from the neighbours, with the coefficient of the southern or eastern of two pixels.
extern "C" __global__ void srad2(float lambda, int rows, int pixels, const int *south_row, const int *east_column,
                                 const float *north_slope, const float *south_slope, const float *west_slope,
                                 const float *east_slope, const float *coefficient, float *image)
{
    int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= pixels)
        return;
    int row = pixel % rows;
    int column = pixel / rows;

    float c = coefficient[pixel];
    float c_south = coefficient[south_row[row] + rows * column];
    float c_east = coefficient[row + rows * east_column[column]];
    float divergence = c * north_slope[pixel] + c_south * south_slope[pixel] + c * west_slope[pixel] +
                       c_east * east_slope[pixel];
    image[pixel] += 0.25f * lambda * divergence;
}
