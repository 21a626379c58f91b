// Decoding of a baseline JPEG with chrominance at half the resolution: Huffman codes to coefficients, those to samples
// by the inverse cosine transform, and samples to pixels. A unit (the standard's MCU) is 16 x 16 pixels: four blocks of
// luminance and one of either chrominance.
#define LENGTHS 16    // of Huffman codes
#define BLOCKS 6      // of a unit
#define IDCT_BLOCKS 8 // that a CTA transforms, with eight threads each
#define PITCH 9       // of a row of a block in the scratchpad, so that columns meet other banks
#define SCALE 13      // bits behind the point of the transform's constants

// By table (0: differences of the first coefficient, 1: the others) and length: the greatest code, -1 if there is none,
// and what to add to a code to get its symbol's place.
__constant__ int greatest[2][LENGTHS];
__constant__ int offset[2][LENGTHS];
__constant__ unsigned char symbols[2][162];
__constant__ unsigned char zigzag[64];    // places in a block, in the order of the stream
__constant__ unsigned char quantum[64];   // by place in a block

struct Bits {
    const unsigned char *next;
    unsigned int held;  // the last byte that was read
    int left;           // bits of it
};

__device__ static int bit(Bits &bits)
{
    if (bits.left == 0) {
        bits.held = *bits.next++;
        if (bits.held == 0xff)
            bits.next++;  // a zero byte, so that this is no marker
        bits.left = 8;
    }
    return bits.held >> --bits.left & 1;
}

__device__ static int symbol(Bits &bits, int table)
{
    int code = bit(bits);
    int length = 0;
    while (code > greatest[table][length]) {
        code = 2 * code + bit(bits);
        length++;
    }
    return symbols[table][code + offset[table][length]];
}

// A number of `size` bits; where the first is zero, it is negative.
__device__ static int number(Bits &bits, int size)
{
    int value = 0;
#pragma unroll 1
    for (int i = 0; i < size; i++)
        value = 2 * value + bit(bits);
    return size > 0 && value >> (size - 1) == 0 ? value - (1 << size) + 1 : value;
}

// A thread per restart interval of `units` units. Coefficients are multiplied by their quantum, and are zero before.
extern "C" __global__ void entropy_decode(const unsigned char *stream, const int *begins, int intervals, int units,
                                          int all_units, short *coefficients)
{
    int interval = blockIdx.x * blockDim.x + threadIdx.x;
    if (interval >= intervals)
        return;
    Bits bits = {stream + begins[interval], 0, 0};
    int predicted[3] = {0, 0, 0};
    int end = min(units * (interval + 1), all_units);

#pragma unroll 1
    for (int unit = units * interval; unit < end; unit++) {
#pragma unroll 1
        for (int block = 0; block < BLOCKS; block++) {
            short *own = coefficients + 64 * (BLOCKS * unit + block);
            int difference = number(bits, symbol(bits, 0));
            int first;  // of this component's block before, and the difference
            if (block < 4)
                first = predicted[0] += difference;
            else if (block == 4)
                first = predicted[1] += difference;
            else
                first = predicted[2] += difference;
            own[0] = first * quantum[0];
#pragma unroll 1
            for (int i = 1; i < 64; i++) {
                int run_and_size = symbol(bits, 1);
                if (run_and_size == 0)
                    break;  // the rest is zero
                i += run_and_size >> 4;
                int at = zigzag[i & 63];
                int value = number(bits, run_and_size & 15);
                own[at] = value * quantum[at];
            }
        }
    }
}

// The cosine of `angle` sixteenths of pi, halved, times 2 ** SCALE.
__device__ static constexpr int cosine(int angle)
{
    const int first[9] = {4096, 4017, 3784, 3406, 2896, 2276, 1567, 799, 0};
    angle %= 32;
    angle = angle > 16 ? 32 - angle : angle;
    return angle > 8 ? -first[16 - angle] : first[angle];
}

// Eight values from eight coefficients: even ones add to both halves, odd ones to the first and from the second.
__device__ static void idct(int *values, int stride, int rounding, int shift)
{
    int even[4];
    int odd[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        even[i] = cosine(4) * values[0];
        odd[i] = 0;
#pragma unroll
        for (int k = 1; k < 8; k++)
            (k % 2 ? odd[i] : even[i]) += cosine((2 * i + 1) * k) * values[k * stride];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        values[i * stride] = (even[i] + odd[i] + rounding) >> shift;
        values[(7 - i) * stride] = (even[i] - odd[i] + rounding) >> shift;
    }
}

// A thread per row of a block, and then per column: samples of 0 to 255 to the planes of luminance and chrominance.
extern "C" __global__ void inverse_transform(const short *coefficients, int blocks, int units_across,
                                             unsigned char *luminance, unsigned char *blue, unsigned char *red)
{
    __shared__ int values[IDCT_BLOCKS][8 * PITCH];
    int line = threadIdx.x;
    int own = threadIdx.y;
    int block = IDCT_BLOCKS * blockIdx.x + own;

    if (block < blocks) {
        const short *row = coefficients + 64 * block + 8 * line;
        for (int i = 0; i < 8; i++)
            values[own][PITCH * line + i] = row[i];
        idct(&values[own][PITCH * line], 1, 1 << (SCALE - 4), SCALE - 3);  // three bits stay behind the point
    }
    __syncthreads();
    if (block >= blocks)
        return;
    idct(&values[own][line], PITCH, 1 << (SCALE + 2), SCALE + 3);

    int unit = block / BLOCKS;
    int part = block % BLOCKS;
    int x = unit % units_across;
    int y = unit / units_across;
    int pitch = 8 * units_across;
    unsigned char *plane = part == 4 ? blue : red;
    int at = pitch * 8 * y + 8 * x;
    if (part < 4) {
        plane = luminance;
        pitch *= 2;
        at = pitch * (16 * y + part / 2 * 8) + 16 * x + part % 2 * 8;
    }
    for (int i = 0; i < 8; i++)
        plane[at + pitch * i + line] = min(max(values[own][PITCH * i + line] + 128, 0), 255);
}

__device__ static unsigned int clamp(int value)
{
    return min(max((value + 32768) >> 16, 0), 255);
}

// A thread per pixel: red, green, blue and 255 in the bytes of a word. Four pixels share a sample of chrominance.
extern "C" __global__ void to_pixels(const unsigned char *luminance, const unsigned char *blue,
                                     const unsigned char *red, int width, int height, unsigned int *pixels)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y;
    if (x >= width)
        return;
    int sample = width / 2 * (y / 2) + x / 2;
    int grey = luminance[width * y + x] << 16;
    int b = blue[sample] - 128;
    int r = red[sample] - 128;
    pixels[width * y + x] = clamp(grey + 91881 * r) | clamp(grey - 22554 * b - 46802 * r) << 8 |
                            clamp(grey + 116130 * b) << 16 | 0xff000000u;
}
