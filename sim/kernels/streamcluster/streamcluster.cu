// streamcluster after Rodinia: what every point would gain if a given point became a centre.
struct Point {
    float weight;
    const float *coordinates;  // the host's: fills the 32 bytes that Rodinia's record has
    long long centre;          // the point that stands for this one
    float cost;                // of being assigned to it
};

// `lower` has a row per point: what each present centre would save, and last the new centre's own part. The coordinates
// stand by columns: a warp's points lie side by side, and all threads read those of the new centre.
extern "C" __global__ void compute_cost(int points, int dimensions, long long candidate, const Point *p, int centres,
                                        int stride, const float *coordinates, float *lower, const int *centre_number,
                                        bool *switches)
{
    int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;

    if (i < points) {
        float *mine = &lower[i * stride];
        float distance = 0.0f;
#pragma unroll 1  // fewer registers: two CTAs in place of one fit on a Fermi SM
        for (int k = 0; k < dimensions; k++) {
            float difference = coordinates[k * points + i] - coordinates[k * points + candidate];
            distance += difference * difference;
        }
        float cost = distance * p[i].weight;
        if (cost < p[i].cost) {
            switches[i] = true;
            mine[centres] += cost - p[i].cost;
        } else {
            mine[centre_number[p[i].centre]] += p[i].cost - cost;
        }
    }
}
