// White blood cells in a video, after Rodinia's leukocyte: where in a frame circles fit best (GICOV: the mean of the
// gradients across a circle, squared, by their variance), the greatest score around each pixel, and for each cell that
// is followed, a field that spreads from its edges (IMGVF). Images stand in memory column by column.
#define POINTS 150      // of a circle
#define MAX_CIRCLES 7
#define MAX_ELEMENT 25  // the width of what a pixel is dilated by
#define THREADS 320     // of a CTA of imgvf
#define MAX_CELL 3321   // pixels
#define PI 3.14159265f
#define MU 0.5f
#define LAMBDA 5.0f

__constant__ float sine[POINTS], cosine[POINTS];
__constant__ int offset_x[MAX_CIRCLES * POINTS], offset_y[MAX_CIRCLES * POINTS];
__constant__ float element[MAX_ELEMENT * MAX_ELEMENT];

// A CTA per column of the image and a thread per row, but for a border as wide as the largest circle needs.
extern "C" __global__ void gicov(cudaTextureObject_t gradient_x, cudaTextureObject_t gradient_y, int rows, int border,
                                 int circles, float *scores)
{
    int column = blockIdx.x + border;
    int row = threadIdx.x + border;
    float best = 0.0f;

#pragma unroll 1
    for (int circle = 0; circle < circles; circle++) {
        float sum = 0.0f;
        float mean = 0.0f;
        float squares = 0.0f;  // of the distances from the mean so far, summed
#pragma unroll 1
        for (int i = 0; i < POINTS; i++) {
            int x = column + offset_x[POINTS * circle + i];
            int y = row + offset_y[POINTS * circle + i];
            int at = rows * x + y;
            float across = tex1Dfetch<float>(gradient_x, at) * cosine[i] + tex1Dfetch<float>(gradient_y, at) * sine[i];
            sum += across;
            float distance = across - mean;
            mean += distance / (float)(i + 1);
            squares += distance * (across - mean);
        }
        mean = sum / (float)POINTS;
        float variance = squares / (float)(POINTS - 1);
        best = fmaxf(best, mean * mean / variance);
    }
    scores[rows * column + row] = best;
}

// The greatest score where a disk around the pixel is not zero. Writes row by row, so that neighbours lie far apart.
extern "C" __global__ void dilate(cudaTextureObject_t scores, int rows, int columns, int width, float *dilated)
{
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= rows * columns)
        return;
    int row = pixel % rows;
    int column = pixel / rows;
    float greatest = 0.0f;

#pragma unroll 1
    for (int i = 0; i < width; i++) {
        int y = row - width / 2 + i;
        if (y < 0 || y >= rows)
            continue;
#pragma unroll 1
        for (int j = 0; j < width; j++) {
            int x = column - width / 2 + j;
            if (x >= 0 && x < columns && element[width * i + j] != 0.0f)
                greatest = fmaxf(greatest, tex1Dfetch<float>(scores, rows * x + y));
        }
    }
    dilated[columns * row + column] = greatest;
}

// A smooth step from 0 to 1.
__device__ static float heaviside(float x)
{
    return atanf(x) * (1.0f / PI) + 0.5f;
}

// A CTA per cell, all of `rows` x `columns` pixels: the field stays in the scratchpad until it changes little. Threads
// go through it in portions, a pixel each. A portion is written when the next, which needs its old values, is computed;
// the barrier between makes sure of it. (Rodinia's stands behind both, so its warps may read what others have written.)
extern "C" __global__ void imgvf(float *fields, const float *images, int rows, int columns, float vx, float vy,
                                 float epsilon, int max_iterations, float cutoff)
{
    __shared__ float field[MAX_CELL];
    __shared__ float buffer[THREADS];
    __shared__ int converged;
    int thread = threadIdx.x;
    int pixels = rows * columns;
    const float *image = images + pixels * blockIdx.x;

    for (int at = thread; at < pixels; at += THREADS)
        field[at] = fields[pixels * blockIdx.x + at];
    if (thread == 0)
        converged = 0;
    __syncthreads();

    float sharpness = 1.0f / epsilon;
    int iterations = 0;
    while (!converged && iterations < max_iterations) {
        float change = 0.0f;
        int row = thread / columns;
        int column = thread % columns;
        for (int first = 0; first < pixels; first += THREADS) {
            int at = first + thread;
            float value = 0.0f;
            if (at < pixels) {
                int up = row == 0 ? 0 : -columns;
                int down = row == rows - 1 ? 0 : columns;
                int left = column == 0 ? 0 : -1;
                int right = column == columns - 1 ? 0 : 1;
                float old = field[at];
                float u = field[at + up] - old;
                float d = field[at + down] - old;
                float l = field[at + left] - old;
                float r = field[at + right] - old;
                float ur = field[at + up + right] - old;
                float dr = field[at + down + right] - old;
                float ul = field[at + up + left] - old;
                float dl = field[at + down + left] - old;
                float flow = u * heaviside(u * -vy * sharpness) + d * heaviside(d * vy * sharpness) +
                             l * heaviside(l * -vx * sharpness) + r * heaviside(r * vx * sharpness) +
                             ur * heaviside(ur * (vx - vy) * sharpness) + dr * heaviside(dr * (vx + vy) * sharpness) +
                             ul * heaviside(ul * (-vx - vy) * sharpness) + dl * heaviside(dl * (vy - vx) * sharpness);
                value = old + MU / LAMBDA * flow;
                float edge = image[at];
                value -= 1.0f / LAMBDA * edge * (value - edge);
                change += fabsf(value - old);
            }
            __syncthreads();
            if (first > 0)
                field[at - THREADS] = buffer[thread];
            buffer[thread] = value;
            if (at < pixels && first + THREADS >= pixels)
                field[at] = value;
            row += THREADS / columns;
            column += THREADS % columns;
            if (column >= columns) {
                column -= columns;
                row++;
            }
        }

        buffer[thread] = change;
        __syncthreads();
        if (thread >= 256)
            buffer[thread - 256] += buffer[thread];
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (thread < half)
                buffer[thread] += buffer[thread + half];
            __syncthreads();
        }
        if (thread == 0 && buffer[0] / (float)pixels < cutoff)
            converged = 1;
        __syncthreads();
        iterations++;
    }

    for (int at = thread; at < pixels; at += THREADS)
        fields[pixels * blockIdx.x + at] = field[at];
}
