// Sums of absolute differences for motion estimation, after Parboil's sad: every block of 4 x 4 pixels of the current
// frame against the reference frame at all places of a search window, then the sums of the six larger kinds of block
// that H.264 has. A macroblock has 16 x 16 pixels. The window reaches `range` pixels to every side: 16 in Parboil.
// Each kind of block has an array of SADs by macroblock, block (row by row) and place, with `pitch` places to a row.
#define MAX_PLACES (33 * 33)
#define PLACES_PER_THREAD 18
#define BLOCK 4   // pixels across the smallest blocks
#define BLOCKS 4  // of them across a macroblock

// A CTA has a block; its threads have 18 places each, one after the other.
extern "C" __global__ void sad_4x4(unsigned short *sads, int pitch, const unsigned short *current, int width,
                                   cudaTextureObject_t reference, int range)
{
    __shared__ unsigned short sad[MAX_PLACES];
    int side = 2 * range + 1;
    int places = side * side;
    int x = blockIdx.x * BLOCK;
    int y = blockIdx.y * BLOCK;
    int first = threadIdx.x * PLACES_PER_THREAD;
    int last = min(first + PLACES_PER_THREAD, places);
    int across = first % side;
    int down = first / side;

    for (int place = first; place < last; place++) {
        int sum = 0;
        for (int row = 0; row < BLOCK; row++)
            for (int column = 0; column < BLOCK; column++) {
                int from_x = x + column + across - range;
                int from_y = y + row + down - range;
                int pixel = tex2D<unsigned short>(reference, from_x, from_y);
                sum += abs(pixel - current[(y + row) * width + x + column]);
            }
        sad[place] = sum;
        if (++across == side) {
            across = 0;
            down++;
        }
    }
    __syncthreads();

    int macroblock = blockIdx.y / BLOCKS * (gridDim.x / BLOCKS) + blockIdx.x / BLOCKS;
    int block = blockIdx.y % BLOCKS * BLOCKS + blockIdx.x % BLOCKS;
    unsigned short *to = sads + (macroblock * (BLOCKS * BLOCKS) + block) * pitch;
    for (int place = threadIdx.x; place < places; place += blockDim.x)
        to[place] = sad[place];
}

// The SADs of a block, two to a word: neither sum is above 16 x 16 x 255, so the lower one does not carry.
__device__ static unsigned int *pairs(unsigned int *sads, int pitch, int blocks, int block)
{
    int macroblock = blockIdx.y * gridDim.x + blockIdx.x;
    return sads + (macroblock * blocks + block) * (pitch / 2);
}

// A CTA has a macroblock, and a row of threads one of its quarters: blocks of 8 x 4, 4 x 8 and 8 x 8 (across x down).
extern "C" __global__ void larger_sad_8(int pitch, unsigned int *sads_4x4, unsigned int *sads_8x4,
                                        unsigned int *sads_4x8, unsigned int *sads_8x8)
{
    int x = threadIdx.y % 2;  // of the quarter
    int y = threadIdx.y / 2;
    int corner = 2 * y * BLOCKS + 2 * x;

    for (int pair = threadIdx.x; pair < pitch / 2; pair += blockDim.x) {
        unsigned int upper_left = pairs(sads_4x4, pitch, 16, corner)[pair];
        unsigned int upper_right = pairs(sads_4x4, pitch, 16, corner + 1)[pair];
        unsigned int lower_left = pairs(sads_4x4, pitch, 16, corner + BLOCKS)[pair];
        unsigned int lower_right = pairs(sads_4x4, pitch, 16, corner + BLOCKS + 1)[pair];
        pairs(sads_8x4, pitch, 8, 4 * y + x)[pair] = upper_left + upper_right;
        pairs(sads_8x4, pitch, 8, 4 * y + x + 2)[pair] = lower_left + lower_right;
        pairs(sads_4x8, pitch, 8, 4 * y + 2 * x)[pair] = upper_left + lower_left;
        pairs(sads_4x8, pitch, 8, 4 * y + 2 * x + 1)[pair] = upper_right + lower_right;
        pairs(sads_8x8, pitch, 4, 2 * y + x)[pair] = upper_left + upper_right + lower_left + lower_right;
    }
}

// A CTA has a macroblock: blocks of 16 x 8, 8 x 16 and 16 x 16.
extern "C" __global__ void larger_sad_16(int pitch, unsigned int *sads_8x8, unsigned int *sads_16x8,
                                         unsigned int *sads_8x16, unsigned int *sads_16x16)
{
    for (int pair = threadIdx.x; pair < pitch / 2; pair += blockDim.x) {
        unsigned int upper_left = pairs(sads_8x8, pitch, 4, 0)[pair];
        unsigned int upper_right = pairs(sads_8x8, pitch, 4, 1)[pair];
        unsigned int lower_left = pairs(sads_8x8, pitch, 4, 2)[pair];
        unsigned int lower_right = pairs(sads_8x8, pitch, 4, 3)[pair];
        pairs(sads_16x8, pitch, 2, 0)[pair] = upper_left + upper_right;
        pairs(sads_16x8, pitch, 2, 1)[pair] = lower_left + lower_right;
        pairs(sads_8x16, pitch, 2, 0)[pair] = upper_left + lower_left;
        pairs(sads_8x16, pitch, 2, 1)[pair] = upper_right + lower_right;
        pairs(sads_16x16, pitch, 1, 0)[pair] = upper_left + upper_right + lower_left + lower_right;
    }
}
