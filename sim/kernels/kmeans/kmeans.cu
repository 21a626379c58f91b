// k-means after Rodinia: the features are turned once from rows into columns, then every launch assigns each point to
// its nearest centre; the host moves the centres.
#define MAX_CLUSTERS 32
#define MAX_FEATURES 34

__constant__ float centres[MAX_CLUSTERS * MAX_FEATURES];

// Reads with a stride of a row, writes side by side.
extern "C" __global__ void invert_mapping(const float *rows, float *columns, int points, int features)
{
    int point = blockIdx.x * blockDim.x + threadIdx.x;

    if (point < points)
        for (int i = 0; i < features; i++)
            columns[point + points * i] = rows[point * features + i];
}

// The grid is two-dimensional, as in Rodinia, which reads the features through a texture; here they are plain loads.
extern "C" __global__ void kmeans_point(const float *columns, int features, int points, int clusters, int *membership)
{
    int point = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;

    if (point < points) {
        int nearest = -1;
        float least = 3.4e38f;
        for (int i = 0; i < clusters; i++) {
            float distance = 0.0f;
#pragma unroll 1  // fewer registers: more CTAs fit on a Fermi SM
            for (int j = 0; j < features; j++) {
                float difference = columns[point + j * points] - centres[i * features + j];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                nearest = i;
            }
        }
        membership[point] = nearest;
    }
}
