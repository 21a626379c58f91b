// Flux of the compressible Euler equations through the four faces of each element of an unstructured mesh, after
// Rodinia's cfd (euler3d). Arrays stand by component, `elements` apart.
#define FACES 4
#define DENSITY 0
#define MOMENTUM 1
#define ENERGY 4
#define VARIABLES 5
#define GAMMA 1.4f
#define SMOOTHING 0.2f

struct Vector {
    float x, y, z;
};

// What a state carries through a face, per direction: of momentum in x, y and z, and of energy.
struct Carried {
    Vector x, y, z, energy;
};

// Of the air far away.
__constant__ float far_variables[VARIABLES];
__constant__ Carried far_carried;

__device__ Vector velocity_of(float density, Vector momentum)
{
    return {momentum.x / density, momentum.y / density, momentum.z / density};
}

__device__ float squared(Vector v)
{
    return v.x * v.x + v.y * v.y + v.z * v.z;
}

__device__ float pressure_of(float density, float energy, float speed_squared)
{
    return (GAMMA - 1.0f) * (energy - 0.5f * density * speed_squared);
}

__device__ float sound(float density, float pressure)
{
    return sqrtf(GAMMA * pressure / density);
}

__device__ Carried carried_by(Vector momentum, float energy, float pressure, Vector velocity)
{
    Carried c;
    c.x = {velocity.x * momentum.x + pressure, velocity.x * momentum.y, velocity.x * momentum.z};
    c.y = {c.x.y, velocity.y * momentum.y + pressure, velocity.y * momentum.z};
    c.z = {c.x.z, c.y.z, velocity.z * momentum.z + pressure};
    float work = energy + pressure;
    c.energy = {velocity.x * work, velocity.y * work, velocity.z * work};
    return c;
}

__device__ Vector load(const float *array, int component, int stride, int elements, int element)
{
    const float *first = array + component * elements + element;
    return {first[0], first[stride * elements], first[2 * stride * elements]};
}

// A neighbour is an element, -1 for the wing's wall or -2 for the far field.
extern "C" __global__ void cuda_compute_flux(int elements, const int *neighbours, const float *normals,
                                             const float *variables, float *fluxes)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;

    float density = variables[i + DENSITY * elements];
    Vector momentum = load(variables, MOMENTUM, 1, elements, i);
    float energy = variables[i + ENERGY * elements];
    Vector velocity = velocity_of(density, momentum);
    float speed_squared = squared(velocity);
    float speed = sqrtf(speed_squared);
    float pressure = pressure_of(density, energy, speed_squared);
    float sound_speed = sound(density, pressure);
    Carried own = carried_by(momentum, energy, pressure, velocity);

    float flux_density = 0.0f;
    float flux_energy = 0.0f;
    Vector flux = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        int other = neighbours[i + face * elements];
        Vector normal = load(normals, face, FACES, elements, i);
        float area = sqrtf(squared(normal));

        if (other >= 0) {
            float other_density = variables[other + DENSITY * elements];
            Vector other_momentum = load(variables, MOMENTUM, 1, elements, other);
            float other_energy = variables[other + ENERGY * elements];
            Vector other_velocity = velocity_of(other_density, other_momentum);
            float other_squared = squared(other_velocity);
            float other_pressure = pressure_of(other_density, other_energy, other_squared);
            float other_sound = sound(other_density, other_pressure);
            Carried theirs = carried_by(other_momentum, other_energy, other_pressure, other_velocity);

            // Artificial viscosity
            float factor = -area * SMOOTHING * 0.5f * (speed + sqrtf(other_squared) + sound_speed + other_sound);
            flux_density += factor * (density - other_density);
            flux_energy += factor * (energy - other_energy);
            flux.x += factor * (momentum.x - other_momentum.x);
            flux.y += factor * (momentum.y - other_momentum.y);
            flux.z += factor * (momentum.z - other_momentum.z);

            factor = 0.5f * normal.x;
            flux_density += factor * (other_momentum.x + momentum.x);
            flux_energy += factor * (theirs.energy.x + own.energy.x);
            flux.x += factor * (theirs.x.x + own.x.x);
            flux.y += factor * (theirs.y.x + own.y.x);
            flux.z += factor * (theirs.z.x + own.z.x);

            factor = 0.5f * normal.y;
            flux_density += factor * (other_momentum.y + momentum.y);
            flux_energy += factor * (theirs.energy.y + own.energy.y);
            flux.x += factor * (theirs.x.y + own.x.y);
            flux.y += factor * (theirs.y.y + own.y.y);
            flux.z += factor * (theirs.z.y + own.z.y);

            factor = 0.5f * normal.z;
            flux_density += factor * (other_momentum.z + momentum.z);
            flux_energy += factor * (theirs.energy.z + own.energy.z);
            flux.x += factor * (theirs.x.z + own.x.z);
            flux.y += factor * (theirs.y.z + own.y.z);
            flux.z += factor * (theirs.z.z + own.z.z);
        } else if (other == -1) {
            flux.x += normal.x * pressure;
            flux.y += normal.y * pressure;
            flux.z += normal.z * pressure;
        } else if (other == -2) {
            float factor = 0.5f * normal.x;
            flux_density += factor * (far_variables[MOMENTUM] + momentum.x);
            flux_energy += factor * (far_carried.energy.x + own.energy.x);
            flux.x += factor * (far_carried.x.x + own.x.x);
            flux.y += factor * (far_carried.y.x + own.y.x);
            flux.z += factor * (far_carried.z.x + own.z.x);

            factor = 0.5f * normal.y;
            flux_density += factor * (far_variables[MOMENTUM + 1] + momentum.y);
            flux_energy += factor * (far_carried.energy.y + own.energy.y);
            flux.x += factor * (far_carried.x.y + own.x.y);
            flux.y += factor * (far_carried.y.y + own.y.y);
            flux.z += factor * (far_carried.z.y + own.z.y);

            factor = 0.5f * normal.z;
            flux_density += factor * (far_variables[MOMENTUM + 2] + momentum.z);
            flux_energy += factor * (far_carried.energy.z + own.energy.z);
            flux.x += factor * (far_carried.x.z + own.x.z);
            flux.y += factor * (far_carried.y.z + own.y.z);
            flux.z += factor * (far_carried.z.z + own.z.z);
        }
    }
    fluxes[i + DENSITY * elements] = flux_density;
    fluxes[i + (MOMENTUM + 0) * elements] = flux.x;
    fluxes[i + (MOMENTUM + 1) * elements] = flux.y;
    fluxes[i + (MOMENTUM + 2) * elements] = flux.z;
    fluxes[i + ENERGY * elements] = flux_energy;
}
