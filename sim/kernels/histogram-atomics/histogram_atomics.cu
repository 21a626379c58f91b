// Histogram of bytes into 256 bins in global memory, an atomic per byte; threads go on by the size of the grid.
extern "C" __global__ void histogram_atomics(unsigned int *histogram, const unsigned char *data, unsigned int count)
{
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)
        atomicAdd(&histogram[data[i]], 1u);
}
