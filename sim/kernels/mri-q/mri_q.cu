// Q matrix of a non-Cartesian MRI reconstruction, after Parboil's mri-q. Compiled with -use_fast_math, as there: sine
// and cosine are the special function unit's. The sample points of one launch stand in constant memory.
#define POINTS_PER_LAUNCH 1024

struct Sample {
    float kx, ky, kz, magnitude;
};

__constant__ Sample samples[POINTS_PER_LAUNCH];

extern "C" __global__ void compute_phi_mag(const float *phi_real, const float *phi_imaginary, float *magnitude,
                                           int count)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;

    if (k < count) {
        float real = phi_real[k];
        float imaginary = phi_imaginary[k];
        magnitude[k] = real * real + imaginary * imaginary;
    }
}

// Adds the contribution of samples[0 .. count - 1] to every voxel's Q.
extern "C" __global__ void compute_q(int count, const float *x, const float *y, const float *z, float *q_real,
                                     float *q_imaginary)
{
    int voxel = blockIdx.x * blockDim.x + threadIdx.x;
    float vx = x[voxel];
    float vy = y[voxel];
    float vz = z[voxel];
    float real = q_real[voxel];
    float imaginary = q_imaginary[voxel];

    for (int k = 0; k < count; k++) {
        float angle = 6.2831853071795864769252867665590058f *
                      (samples[k].kx * vx + samples[k].ky * vy + samples[k].kz * vz);
        real += samples[k].magnitude * cosf(angle);
        imaginary += samples[k].magnitude * sinf(angle);
    }
    q_real[voxel] = real;
    q_imaginary[voxel] = imaginary;
}
