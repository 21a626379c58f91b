// Tracking points of a heart's walls through a video, after Rodinia's heartwall: a CTA per point, a launch per frame. The
// point's template is looked for in a window around its last place: where both are most alike, the point is now.
#define THREADS 256

struct Sizes {
    int rows, columns;    // of a frame
    int template_radius;
    int search_radius;
    int move;             // how far a point may get in one frame
    float keep;           // of the template, when it takes on the point's new surroundings
};

// What a point works with, in device memory.
struct Space {
    float *pattern;   // its template, side x side
    float *window;    // where it is looked for
    float *product;   // sums of products at every place where template and window overlap
    float *down;      // running sums of the window, which is padded with zeros
    float *down_two;  // of its squares
    float *across;    // running sums of sums over the template's height
    float *across_two;
    float *allowed;   // where the point may be
};

__constant__ Sizes sizes;

// Sums over the template's height, at every place, from running sums down the padded window; then these, summed up along
// the row.
__device__ static void sum_across(const float *down, float *across, int side, int places, int padded)
{
    for (int at = threadIdx.x; at < places * padded; at += THREADS)
        across[at] = down[at + side * padded] - down[at];
    __syncthreads();
    for (int row = threadIdx.x; row < places; row += THREADS) {
        float sum = 0;
        for (int column = 0; column < padded; column++) {
            sum += across[row * padded + column];
            across[row * padded + column] = sum;
        }
    }
    __syncthreads();
}

extern "C" __global__ void track(const float *frame, int first, int *point_row, int *point_column, float *score,
                                 const Space *spaces)
{
    __shared__ float partial[THREADS], partial_two[THREADS];
    __shared__ int partial_column[THREADS];
    __shared__ float mean, deviation;
    __shared__ int row, column;
    const Space space = spaces[blockIdx.x];
    int thread = threadIdx.x;
    int radius = sizes.template_radius, side = 2 * radius + 1;
    int reach = sizes.search_radius, width = 2 * reach + 1;
    int places = width + side - 1;      // along an axis, where both overlap
    int padded = width + 2 * side;
    int centre = reach + radius;        // the place where the point was

    if (thread == 0) {
        row = point_row[blockIdx.x];
        column = point_column[blockIdx.x];
    }
    __syncthreads();

    if (!first) {
        // The template's mean, and its deviation times the root of its elements.
        if (thread < side) {
            float sum = 0, squares = 0;
            for (int i = 0; i < side; i++) {
                float value = space.pattern[thread * side + i];
                sum += value;
                squares += value * value;
            }
            partial[thread] = sum;
            partial_two[thread] = squares;
        }
        __syncthreads();
        if (thread == 0) {
            float sum = 0, squares = 0;
            for (int i = 0; i < side; i++) {
                sum += partial[i];
                squares += partial_two[i];
            }
            mean = sum / (side * side);
            deviation = sqrtf(squares - sum * mean);
        }

        for (int at = thread; at < width * width; at += THREADS)
            space.window[at] = frame[(row - reach + at / width) * sizes.columns + column - reach + at % width];
        __syncthreads();

        for (int at = thread; at < places * places; at += THREADS) {
            int top = at / places - (side - 1), left = at % places - (side - 1);
            int i_end = min(side, width - top), j_end = min(side, width - left);
            float sum = 0;
            for (int i = max(0, -top); i < i_end; i++)
                for (int j = max(0, -left); j < j_end; j++)
                    sum += space.pattern[i * side + j] * space.window[(top + i) * width + left + j];
            space.product[at] = sum;
        }

        for (int x = thread; x < padded; x += THREADS) {
            float sum = 0, squares = 0;
            for (int y = 0; y < padded; y++) {
                if (x >= side && x < side + width && y >= side && y < side + width) {
                    float value = space.window[(y - side) * width + x - side];
                    sum += value;
                    squares += value * value;
                }
                space.down[y * padded + x] = sum;
                space.down_two[y * padded + x] = squares;
            }
        }
        __syncthreads();
        sum_across(space.down, space.across, side, places, padded);
        sum_across(space.down_two, space.across_two, side, places, padded);

        // How alike both are: covariance over the product of the deviations.
        for (int at = thread; at < places * places; at += THREADS) {
            int from = at / places * padded + at % places;
            float sum = space.across[from + side] - space.across[from];
            float squares = space.across_two[from + side] - space.across_two[from];
            float variance = squares - sum * sum / (side * side);
            float scale = variance > 0 ? deviation * sqrtf(variance) : 0;
            space.product[at] = scale > 0 ? (space.product[at] - sum * mean) / scale : 0;
            space.allowed[at] = at == centre * places + centre ? 1 : 0;
        }
        __syncthreads();

        // A mark at the old place is spread by the way that the point may go; what is outside does not count.
        int move = sizes.move;
        for (int x = thread; x < places; x += THREADS) {
            float best = -1;
            int at = 0;
            for (int y = 0; y < places; y++) {
                float weight = 0;
                for (int i = max(0, y - move); i <= min(places - 1, y + move); i++)
                    for (int j = max(0, x - move); j <= min(places - 1, x + move); j++)
                        weight += space.allowed[i * places + j];
                float value = space.product[y * places + x] * weight;
                if (value > best) {
                    best = value;
                    at = y;
                }
            }
            partial[x] = best;
            partial_column[x] = at;
        }
        __syncthreads();
        if (thread == 0) {
            int best = 0;
            for (int x = 1; x < places; x++)
                if (partial[x] > partial[best])
                    best = x;
            row += partial_column[best] - centre;
            column += best - centre;
            point_row[blockIdx.x] = row;
            point_column[blockIdx.x] = column;
            score[blockIdx.x] = partial[best];
        }
        __syncthreads();
    }

    for (int at = thread; at < side * side; at += THREADS) {
        float value = frame[(row - radius + at / side) * sizes.columns + column - radius + at % side];
        space.pattern[at] = first ? value : sizes.keep * space.pattern[at] + (1 - sizes.keep) * value;
    }
}
