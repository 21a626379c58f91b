// Particle filter after Rodinia's float version: a cloud of particles follows a disk through the frames of a video. A
// frame takes five launches; Rodinia has the third and the fourth in one, in which the first thread sums up what other
// CTAs may not have divided yet.
#define THREADS 512  // of a CTA, at most

// Advances a thread's generator and returns its state, below 2^31 - 1.
__device__ unsigned int draw(unsigned int *seed)
{
    unsigned int next = (1103515245u * *seed + 12345u) % 2147483647u;
    *seed = next;
    return next;
}

// About normal, deviation 1: the sum of four uniform numbers, a multiple of 7/1024. (Rodinia's Box-Muller needs log and
// cos, of which two machines need not agree on the last bit, and a rounding of positions to pixels shows it.)
__device__ float noise(unsigned int *seed)
{
    int sum = -510;
    for (int i = 0; i < 4; i++)
        sum += draw(seed) >> 23;
    return (float)sum * (7.0f / 1024.0f);
}

// Moves the particles, weighs each by how much the pixels around it look like the disk, and sums up the weights of the
// CTA. `pixels` is a list per particle, so neighbouring threads write and read lines of their own.
extern "C" __global__ void likelihood(float *x, float *y, const float *old_x, const float *old_y, int *pixels,
                                      const int *disk, float *likelihoods, const unsigned char *video, float *weights,
                                      unsigned int *seed, float *partial_sums, int particles, int ones, int size,
                                      int frame, int columns, int frames)
{
    __shared__ float buffer[THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < particles) {
        x[i] = old_x[i] + 1.0f + 5.0f * noise(&seed[i]);
        y[i] = old_y[i] - 2.0f + 2.0f * noise(&seed[i]);
    }
    __syncthreads();

    if (i < particles) {
        for (int k = 0; k < ones; k++) {
            int row = (int)roundf(x[i]) + disk[2 * k + 1];
            int column = (int)roundf(y[i]) + disk[2 * k];
            pixels[i * ones + k] = abs((row * columns + column) * frames + frame);
            if (pixels[i * ones + k] >= size)
                pixels[i * ones + k] = 0;
        }
        float sum = 0.0f;
        for (int k = 0; k < ones; k++) {
            int background = video[pixels[i * ones + k]] - 100;
            int foreground = video[pixels[i * ones + k]] - 228;
            sum += (float)(background * background - foreground * foreground) / 50.0f;
        }
        likelihoods[i] = sum / (float)ones;
        // A power of two in place of e to the likelihood: exact, and within the range of float.
        weights[i] = 1.0f / (float)particles * exp2f(rintf(likelihoods[i] / 32.0f));
    }

    buffer[threadIdx.x] = i < particles ? weights[i] : 0.0f;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            buffer[threadIdx.x] += buffer[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial_sums[blockIdx.x] = buffer[0];
}

// One thread adds up the sums of the CTAs.
extern "C" __global__ void sum(float *partial_sums, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i == 0) {
        float total = 0.0f;
        for (int k = 0; k < count; k++)
            total += partial_sums[k];
        partial_sums[0] = total;
    }
}

extern "C" __global__ void normalize_weights(float *weights, const float *partial_sums, int particles)
{
    __shared__ float total;
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x == 0)
        total = partial_sums[0];
    __syncthreads();
    if (i < particles)
        weights[i] /= total;
}

// One thread makes the distribution function and draws where the comb of `find_index` begins.
extern "C" __global__ void cumulate(float *distribution, const float *weights, float *start, unsigned int *seed,
                                    int particles)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i == 0) {
        distribution[0] = weights[0];
        for (int k = 1; k < particles; k++)
            distribution[k] = weights[k] + distribution[k - 1];
        start[0] = 1.0f / (float)particles * ((float)draw(seed) / 2147483648.0f);
    }
}

// Draws the next cloud: each thread searches the distribution for its tooth of the comb.
extern "C" __global__ void find_index(const float *x, const float *y, const float *distribution, const float *start,
                                      float *new_x, float *new_y, int particles)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < particles) {
        float tooth = start[0] + (float)i / (float)particles;
        int index = particles - 1;
        for (int k = 0; k < particles; k++)
            if (distribution[k] >= tooth) {
                index = k;
                break;
            }
        new_x[i] = x[index];
        new_y[i] = y[index];
    }
}
