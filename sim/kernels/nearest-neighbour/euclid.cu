// Distances from a place to all records, after Rodinia's nn; the host picks the least.
struct Place {
    float latitude, longitude;
};

extern "C" __global__ void euclid(const Place *records, float *distances, int count, float latitude, float longitude)
{
    int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;

    if (i < count) {
        float north = latitude - records[i].latitude;
        float east = longitude - records[i].longitude;
        distances[i] = sqrtf(north * north + east * east);
    }
}
