// Weight update of a neural network's input layer, after Rodinia's backprop, with learning rate and momentum of 0.3.
#define WIDTH 16
#define HEIGHT 16
#define ETA 0.3f
#define MOMENTUM 0.3f

extern "C" __global__ void adjust_weights(const float *delta, int hidden, const float *layer, float *weights,
                                          float *old_change)
{
    int by = blockIdx.y;
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int index = (hidden + 1) * HEIGHT * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    int index_y = HEIGHT * by + ty + 1;
    int index_x = tx + 1;

    float change = ETA * delta[index_x] * layer[index_y] + MOMENTUM * old_change[index];
    weights[index] += change;
    old_change[index] = change;
    __syncthreads();

    if (ty == 0 && by == 0) { // the bias
        change = ETA * delta[index_x] + MOMENTUM * old_change[index_x];
        weights[index_x] += change;
        old_change[index_x] = change;
    }
}
