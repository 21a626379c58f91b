// Correlation matrix of the columns of `data` in four launches. As in PolyBench, rows and columns count from 1: a row
// is columns + 1 elements long, and warps straddle lines. As there, too, the sums are kept in memory: every step of the
// loops stores, since the compiler must assume that the arrays overlap.
#define EPSILON 0.005f  // a deviation below it counts as 1

extern "C" __global__ void corr_mean(int rows, int columns, float *mean, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;

    if (j <= columns) {
        mean[j] = 0.0f;
        for (int i = 1; i <= rows; i++)
            mean[j] += data[i * (columns + 1) + j];
        mean[j] /= (float)rows;
    }
}

extern "C" __global__ void corr_deviation(int rows, int columns, float *mean, float *deviation, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;

    if (j <= columns) {
        deviation[j] = 0.0f;
        for (int i = 1; i <= rows; i++) {
            float difference = data[i * (columns + 1) + j] - mean[j];
            deviation[j] += difference * difference;
        }
        deviation[j] = sqrtf(deviation[j] / (float)rows);
        if (deviation[j] <= EPSILON)
            deviation[j] = 1.0f;
    }
}

// Centres and scales the columns.
extern "C" __global__ void corr_reduce(int rows, int columns, float *mean, float *deviation, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int i = blockIdx.y * blockDim.y + threadIdx.y + 1;

    if (i <= rows && j <= columns) {
        data[i * (columns + 1) + j] -= mean[j];
        data[i * (columns + 1) + j] /= sqrtf((float)rows) * deviation[j];
    }
}

// Each thread makes a row right of the diagonal, `reach` elements at most, and mirrors it: its sums are stored to a line
// of its own. The host writes the last element of the diagonal.
extern "C" __global__ void corr_matrix(int rows, int columns, int reach, float *correlation, float *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;

    if (j < columns) {
        correlation[j * (columns + 1) + j] = 1.0f;
        int last = min(columns, j + reach);
        for (int k = j + 1; k <= last; k++) {
            correlation[j * (columns + 1) + k] = 0.0f;
            for (int i = 1; i <= rows; i++)
                correlation[j * (columns + 1) + k] += data[i * (columns + 1) + j] * data[i * (columns + 1) + k];
            correlation[k * (columns + 1) + j] = correlation[j * (columns + 1) + k];
        }
    }
}
