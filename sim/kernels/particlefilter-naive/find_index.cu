// Resampling after Rodinia's naive particle filter, the one part that is on the GPU: each thread searches the distribution
// function from its beginning for the first particle that reaches its tooth of a comb.
extern "C" __global__ void find_index(const double *x, const double *y, const double *distribution, const double *teeth,
                                      double *new_x, double *new_y, int particles)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < particles) {
        int index = 0;
        while (index < particles && distribution[index] < teeth[i])
            index++;
        index = min(index, particles - 1);
        new_x[i] = x[index];
        new_y[i] = y[index];
    }
}
