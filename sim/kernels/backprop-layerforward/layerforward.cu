// Forward pass of a neural network's input layer, after Rodinia's backprop: a CTA of 16 x 16 threads multiplies 16
// inputs with their weights to 16 hidden units and adds the products over the inputs by a tree in the scratchpad. What
// the tree leaves also replaces the weights in memory, as in the original.
#define WIDTH 16
#define HEIGHT 16

extern "C" __global__ void layerforward(const float *input, float *weights, float *partial_sums, int hidden)
{
    __shared__ float node[HEIGHT];
    __shared__ float weight[HEIGHT][WIDTH];
    int by = blockIdx.y;
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int index = (hidden + 1) * HEIGHT * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    int index_in = HEIGHT * by + ty + 1;

    if (tx == 0)
        node[ty] = input[index_in];
    __syncthreads();
    weight[ty][tx] = weights[index];
    __syncthreads();
    weight[ty][tx] = weight[ty][tx] * node[ty];
    __syncthreads();

    for (int step = 2; step <= HEIGHT; step *= 2) {
        if (ty % step == 0)
            weight[ty][tx] = weight[ty][tx] + weight[ty + step / 2][tx];
        __syncthreads();
    }
    weights[index] = weight[ty][tx];
    __syncthreads();
    if (tx == 0)
        partial_sums[by * hidden + ty] = weight[tx][ty];
}
