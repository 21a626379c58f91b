// product = product + left right, one element per thread. As in PolyBench the sum is kept in memory: every step of the
// loop stores, since the compiler must assume that the matrices overlap. `pitch` is the length of a row of `left`.
static __device__ void add_product(int rows, int columns, int steps, int pitch, float *left, float *right,
                                   float *product)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < rows && j < columns)
        for (int k = 0; k < steps; k++)
            product[i * columns + j] += left[i * pitch + k] * right[k * columns + j];
}

extern "C" __global__ void multiply(int rows, int columns, int depth, float *left, float *right, float *product)
{
    add_product(rows, columns, depth, depth, left, right, product);
}

// The first terms of the sums only: a sample of matrices that are larger. An entry of its own, because a further
// parameter is a further instruction, and `multiply` is what another simulator has run.
extern "C" __global__ void multiply_part(int rows, int columns, int depth, int steps, float *left, float *right,
                                         float *product)
{
    add_product(rows, columns, steps, depth, left, right, product);
}
