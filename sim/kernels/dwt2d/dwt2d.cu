// Wavelet transform of an image after Rodinia's dwt2d, reversible 5/3 in integers: the image is split into its colours;
// then each launch makes a level of one colour, the averages of which are the next level's image.
#define SPLIT_BLOCK 256
#define WINDOW 8                 // rows that a CTA transforms at a time
#define ROWS (WINDOW + 3)        // of the scratchpad: two above the window and one below
#define HALO_LEFT 2
#define PAIRS(width) (width / 2 + 2)

// From interleaved bytes to whole numbers about zero. Bytes are read in order and picked in the scratchpad.
extern "C" __global__ void split_components(const unsigned char *image, int *red, int *green, int *blue, int pixels)
{
    __shared__ unsigned char bytes[3 * SPLIT_BLOCK];
    int thread = threadIdx.x;
    int first = blockIdx.x * SPLIT_BLOCK;

    for (int at = thread; at < 3 * SPLIT_BLOCK; at += SPLIT_BLOCK)
        if (3 * first + at < 3 * pixels)
            bytes[at] = image[3 * first + at];
    __syncthreads();
    if (first + thread < pixels) {
        red[first + thread] = bytes[3 * thread] - 128;
        green[first + thread] = bytes[3 * thread + 1] - 128;
        blue[first + thread] = bytes[3 * thread + 2] - 128;
    }
}

// Beyond an edge the image is mirrored at its last pixel.
__device__ static int mirror(int at, int size)
{
    at = abs(at);
    return at < size ? at : max(2 * (size - 1) - at, 0);
}

__device__ static int detail(int before, int own, int after)
{
    return own - ((before + after) >> 1);
}

__device__ static int average(int before, int own, int after)
{
    return own + ((before + after + 2) >> 2);
}

// A CTA transforms a strip of WIDTH columns, window by window on its way down. In the scratchpad, even columns stand apart
// from odd ones, so that neighbouring threads meet different banks; there they become averages and details. Of those in
// both directions, averages go to `low`, the rest to their quarters of `bands`. No loop is unrolled, so that the scratchpad
// alone limits the CTAs of an SM.
template <int WIDTH>
__device__ static void fdwt53(const int *image, int image_pitch, int width, int height, int *low, int low_pitch,
                              int *bands, int pitch, int windows)
{
    __shared__ int even[ROWS][PAIRS(WIDTH)];
    __shared__ int odd[ROWS][PAIRS(WIDTH)];
    int thread = threadIdx.x;
    int left = WIDTH * blockIdx.x;
    int top = WINDOW * windows * blockIdx.y;

    // A thread has a pair of columns, in every second row; going down, the lower half of the threads has the columns of
    // averages, the upper those of details.
    int upper = thread / (WIDTH / 2);
    int i = thread % (WIDTH / 2) + 1;
    int column = left / 2 + i - 1;
    int(*own)[PAIRS(WIDTH)] = upper ? odd : even;
    bool stores = 2 * column + upper < width;
    int half_width = (width + 1) / 2;
    int half_height = (height + 1) / 2;

    for (int window = 0; window < windows && top < height; window++) {
        int first = window == 0 ? 0 : 3;  // the rows before are there

#pragma unroll 1
        for (int row = first; row < ROWS; row++) {
            const int *line = image + image_pitch * mirror(top - 2 + row, height);
#pragma unroll 1
            for (int at = thread; at < WIDTH + HALO_LEFT + 1; at += WIDTH) {
                int value = line[mirror(left - HALO_LEFT + at, width)];
                (at % 2 ? odd : even)[row][at / 2] = value;
            }
        }
        __syncthreads();
#pragma unroll 1
        for (int row = first + upper; row < ROWS; row += 2)
            odd[row][i] = detail(even[row][i], odd[row][i], even[row][i + 1]);
        if (thread < ROWS - first)
            odd[first + thread][0] = detail(even[first + thread][0], odd[first + thread][0], even[first + thread][1]);
        __syncthreads();
#pragma unroll 1
        for (int row = first + upper; row < ROWS; row += 2)
            even[row][i] = average(odd[row][i - 1], even[row][i], odd[row][i]);
        __syncthreads();

        if (window == 0)
            own[1][i] = detail(own[0][i], own[1][i], own[2][i]);
#pragma unroll 1
        for (int row = 2; row < ROWS - 1; row += 2) {
            own[row + 1][i] = detail(own[row][i], own[row + 1][i], own[row + 2][i]);
            int value = average(own[row - 1][i], own[row][i], own[row + 1][i]);
            int y = (top + row - 2) / 2;
            if (stores && 2 * y < height) {
                if (upper)
                    bands[pitch * y + half_width + column] = value;
                else
                    low[low_pitch * y + column] = value;
            }
            if (stores && 2 * y + 1 < height)
                bands[pitch * (half_height + y) + (upper ? half_width : 0) + column] = own[row + 1][i];
        }
        own[1][i] = own[ROWS - 2][i];
        own[2][i] = own[ROWS - 1][i];
        top += WINDOW;
        __syncthreads();
    }
}

#define KERNEL(WIDTH)                                                                                                  \
    extern "C" __global__ void fdwt53_##WIDTH(const int *image, int image_pitch, int width, int height, int *low,      \
                                              int low_pitch, int *bands, int pitch, int windows)                       \
    {                                                                                                                  \
        fdwt53<WIDTH>(image, image_pitch, width, height, low, low_pitch, bands, pitch, windows);                       \
    }
KERNEL(64)
KERNEL(128)
KERNEL(192)
