// Covariance matrix of the columns of `data` in three launches. As in PolyBench, rows and columns count from 1: a row
// is columns + 1 elements long, and warps straddle lines. As there, too, the sums are kept in memory: every step of the
// loops stores, since the compiler must assume that the arrays overlap.
extern "C" __global__ void covar_mean(int rows, int columns, float *mean, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;

    if (j <= columns) {
        mean[j] = 0.0f;
        for (int i = 1; i <= rows; i++)
            mean[j] += data[i * (columns + 1) + j];
        mean[j] /= (float)rows;
    }
}

// Centres the columns.
extern "C" __global__ void covar_reduce(int rows, int columns, float *mean, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int i = blockIdx.y * blockDim.y + threadIdx.y + 1;

    if (i <= rows && j <= columns)
        data[i * (columns + 1) + j] -= mean[j];
}

// Each thread makes a row from the diagonal on, at most `reach` elements right of it, and mirrors it: its sums are
// stored to a line of its own.
extern "C" __global__ void covar_matrix(int rows, int columns, int reach, float *covariance, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int last = min(columns, j + reach);

    if (j <= columns)
        for (int k = j; k <= last; k++) {
            covariance[j * (columns + 1) + k] = 0.0f;
            for (int i = 1; i <= rows; i++)
                covariance[j * (columns + 1) + k] += data[i * (columns + 1) + j] * data[i * (columns + 1) + k];
            covariance[k * (columns + 1) + j] = covariance[j * (columns + 1) + k];
        }
}
