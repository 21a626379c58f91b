// Forces between the particles of neighbouring boxes, after Rodinia's lavaMD: a CTA per box, a thread per particle, and
// 28 threads without. The CTA keeps its own particles in the scratchpad, and one neighbour's at a time.
#define PARTICLES 100  // in a box
#define THREADS 128
#define MAX_NEIGHBOURS 26

struct Particle {
    double v, x, y, z;
};

struct Place {
    int x, y, z;
    int number;
    long long offset;  // of its first particle
};

struct Box {
    Place home;
    int neighbours;
    Place neighbour[MAX_NEIGHBOURS];
};

struct Dimensions {
    int cur_arg, arch_arg, cores_arg, boxes1d_arg;
    long long boxes, box_bytes, particles, particle_bytes, charge_bytes;
};

struct Parameters {
    double alpha;
};

__device__ void copy(volatile Particle &to, const Particle &from)
{
    to.v = from.v;
    to.x = from.x;
    to.y = from.y;
    to.z = from.z;
}

__device__ double dot(const volatile Particle &a, const volatile Particle &b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

extern "C" __global__ void kernel_gpu_cuda(Parameters parameters, Dimensions dimensions, const Box *boxes,
                                           const Particle *positions, const double *charges, Particle *forces)
{
    // Volatile: read anew at each use, so that the kernel gets by with the papers' registers.
    __shared__ volatile Particle own[PARTICLES];
    __shared__ volatile Particle other[PARTICLES];
    __shared__ double charge[PARTICLES];

    int box = blockIdx.x;
    int thread = threadIdx.x;
    if (box >= dimensions.boxes)
        return;

    double a2 = 2.0 * parameters.alpha * parameters.alpha;
    long long first = boxes[box].home.offset;
#pragma unroll 1
    for (int i = thread; i < PARTICLES; i += THREADS)
        copy(own[i], positions[first + i]);
    __syncthreads();

    for (int k = 0; k < 1 + boxes[box].neighbours; k++) {
        int from = k == 0 ? box : boxes[box].neighbour[k - 1].number;
        long long other_first = boxes[from].home.offset;
#pragma unroll 1
        for (int i = thread; i < PARTICLES; i += THREADS) {
            copy(other[i], positions[other_first + i]);
            charge[i] = charges[other_first + i];
        }
        __syncthreads();

#pragma unroll 1
        for (int i = thread; i < PARTICLES; i += THREADS) {
            Particle *force = &forces[first + i];
#pragma unroll 1
            for (int j = 0; j < PARTICLES; j++) {
                double r2 = own[i].v + other[j].v - dot(own[i], other[j]);
                double vij = exp(-(a2 * r2));
                double fs = 2.0 * vij;
                double dx = own[i].x - other[j].x;
                double dy = own[i].y - other[j].y;
                double dz = own[i].z - other[j].z;
                force->v += charge[j] * vij;
                force->x += charge[j] * (fs * dx);
                force->y += charge[j] * (fs * dy);
                force->z += charge[j] * (fs * dz);
            }
        }
        __syncthreads();
    }
}
