// product = product + left right, one element per thread. As in PolyBench the sum is kept in memory: every step of the
// loop stores, since the compiler must assume that the matrices overlap. Of the depth, which is the pitch of `left`, the
// sums take the first `steps`.
extern "C" __global__ void multiply(int rows, int columns, int depth, int steps, float *left, float *right,
                                    float *product)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < rows && j < columns)
        for (int k = 0; k < steps; k++)
            product[i * columns + j] += left[i * depth + k] * right[k * columns + j];
}
