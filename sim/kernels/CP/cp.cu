// Coulombic potential of point charges on a slice of a lattice, after Parboil 1's cp as GPGPU-Sim has it. A thread
// computes two points of a row, 16 apart, so that its half-warp writes side by side. The atoms of one launch stand in
// constant memory.
#define ATOMS_PER_LAUNCH 4000
#define BLOCK_X 16

struct Atom {
    float x, y, height2, charge;  // height2: the square of its distance from the slice
};

__constant__ Atom atoms[ATOMS_PER_LAUNCH];

// Adds the potential of atoms[0 .. count - 1]. rsqrtf is the one instruction that the original's compiler made of
// 1 / sqrtf.
extern "C" __global__ void cenergy(int count, float spacing, float *energy)
{
    int column = 2 * BLOCK_X * blockIdx.x + threadIdx.x;
    int row = blockDim.y * blockIdx.y + threadIdx.y;
    float x = spacing * column;
    float y = spacing * row;
    float near = 0.0f;
    float far = 0.0f;

    for (int i = 0; i < count; i++) {
        float dy = y - atoms[i].y;
        float beside2 = dy * dy + atoms[i].height2;
        float dx = x - atoms[i].x;
        float dx_far = dx + spacing * BLOCK_X;
        near += atoms[i].charge * rsqrtf(dx * dx + beside2);
        far += atoms[i].charge * rsqrtf(dx_far * dx_far + beside2);
    }
    float *point = &energy[2 * BLOCK_X * gridDim.x * row + column];
    point[0] += near;
    point[BLOCK_X] += far;
}
