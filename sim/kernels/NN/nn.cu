// Recognition of handwritten digits by a neural network of four layers, after the NN of GPGPU-Sim's benchmarks. A CTA
// computes one map of neurons, or one neuron, of the next layer; blockIdx.y is the image. Neurons of an image lie map
// by map, and each map's weights begin with its bias.
#define IMAGE 29   // pixels per side
#define FIRST 13   // neurons per side of the 6 maps after the first layer, ...
#define SECOND 5   // ... and of the 50 maps after the second
#define FIRST_MAPS 6
#define SECOND_MAPS 50
#define THIRD_NEURONS 100
#define FOURTH_NEURONS 10
#define TAPS 25    // of a window of 5 x 5, which moves by two

__constant__ int image_tap[TAPS] = {
      0,   1,   2,   3,   4,
     29,  30,  31,  32,  33,
     58,  59,  60,  61,  62,
     87,  88,  89,  90,  91,
    116, 117, 118, 119, 120,
};
__constant__ int first_tap[TAPS] = {
     0,  1,  2,  3,  4,
    13, 14, 15, 16, 17,
    26, 27, 28, 29, 30,
    39, 40, 41, 42, 43,
    52, 53, 54, 55, 56,
};

__device__ static float activation(float sum)
{
    return 1.7159f * tanhf(0.66666667f * sum);
}

extern "C" __global__ void executeFirstLayer(const float *images, const float *weights, float *neurons)
{
    const float *weight = &weights[blockIdx.x * (1 + TAPS)];
    const float *corner = &images[IMAGE * IMAGE * blockIdx.y + 2 * threadIdx.y * IMAGE + 2 * threadIdx.x];

    float sum = weight[0];
    for (int i = 0; i < TAPS; i++)
        sum += corner[image_tap[i]] * weight[1 + i];
    neurons[FIRST * FIRST * (FIRST_MAPS * blockIdx.y + blockIdx.x) + FIRST * threadIdx.y + threadIdx.x] =
        activation(sum);
}

// The weights of the six maps stand side by side for each tap.
extern "C" __global__ void executeSecondLayer(const float *first, const float *weights, float *neurons)
{
    const float *weight = &weights[blockIdx.x * (1 + TAPS) * FIRST_MAPS];
    const float *corner = &first[FIRST * FIRST * FIRST_MAPS * blockIdx.y + 2 * threadIdx.y * FIRST + 2 * threadIdx.x];

    float sum = weight[0];
    for (int i = 0; i < TAPS; i++)
        for (int map = 0; map < FIRST_MAPS; map++)
            sum += corner[FIRST * FIRST * map + first_tap[i]] * weight[1 + i * FIRST_MAPS + map];
    neurons[SECOND * SECOND * (SECOND_MAPS * blockIdx.y + blockIdx.x) + SECOND * threadIdx.y + threadIdx.x] =
        activation(sum);
}

// One thread sums up the `inputs` neurons of an image.
__device__ static float neuron(const float *before, const float *weights, int inputs)
{
    const float *weight = &weights[blockIdx.x * (1 + inputs)];

    float sum = weight[0];
    for (int i = 0; i < inputs; i++)
        sum += before[i + inputs * blockIdx.y] * weight[1 + i];
    return activation(sum);
}

extern "C" __global__ void executeThirdLayer(const float *second, const float *weights, float *neurons)
{
    neurons[THIRD_NEURONS * blockIdx.y + blockIdx.x] = neuron(second, weights, SECOND * SECOND * SECOND_MAPS);
}

extern "C" __global__ void executeFourthLayer(const float *third, const float *weights, float *neurons)
{
    neurons[FOURTH_NEURONS * blockIdx.y + blockIdx.x] = neuron(third, weights, THIRD_NEURONS);
}
