// atax's first function with its sum in a register: a thread stores once, behind its loop.
extern "C" __global__ void atax_1_register(int rows, int columns, int steps, float *a, float *x, float *tmp)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows) {
        float sum = tmp[i];
        for (int j = 0; j < steps; j++)
            sum += a[i * columns + j] * x[j];
        tmp[i] = sum;
    }
}
