// Three ways to sum up the elements before each element of an array (exclusive scan), after the SDK's first scan: a CTA
// has an array in the scratchpad.

// Hillis and Steele: in each step every element gets the one `distance` before it. A thread per element, two buffers.
extern "C" __global__ void scan_naive(float *output, const float *input, int elements)
{
    extern __shared__ float buffers[];
    int tid = threadIdx.x;
    float *from = buffers;
    float *to = buffers + elements;
    input += blockIdx.x * elements;
    output += blockIdx.x * elements;

    to[tid] = tid > 0 ? input[tid - 1] : 0.0f;
    for (int distance = 1; distance < elements; distance *= 2) {
        float *last = to;
        to = from;
        from = last;
        __syncthreads();
        to[tid] = tid >= distance ? from[tid] + from[tid - distance] : from[tid];
    }
    output[tid] = to[tid];
}

// Blelloch: sums up a tree, and down again what is before each node. `place` says where an element lies.
template <typename Place>
__device__ static void up_and_down(float *element, int elements, Place place)
{
    int tid = threadIdx.x;
    int distance = 1;

    for (int nodes = elements / 2; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (tid < nodes)
            element[place(distance * (2 * tid + 2) - 1)] += element[place(distance * (2 * tid + 1) - 1)];
        distance *= 2;
    }
    if (tid == 0)
        element[place(elements - 1)] = 0.0f;
    for (int nodes = 1; nodes < elements; nodes *= 2) {
        distance /= 2;
        __syncthreads();
        if (tid < nodes) {
            float *left = element + place(distance * (2 * tid + 1) - 1);
            float *right = element + place(distance * (2 * tid + 2) - 1);
            float sum = *left;
            *left = *right;
            *right += sum;
        }
    }
    __syncthreads();
}

// A thread for two elements that are side by side.
extern "C" __global__ void scan_workefficient(float *output, const float *input, int elements)
{
    extern __shared__ float element[];
    int tid = threadIdx.x;
    input += blockIdx.x * elements;
    output += blockIdx.x * elements;

    element[2 * tid] = input[2 * tid];
    element[2 * tid + 1] = input[2 * tid + 1];
    up_and_down(element, elements, [](int i) { return i; });
    output[2 * tid] = element[2 * tid];
    output[2 * tid + 1] = element[2 * tid + 1];
}

#define BANKS_LOG 4  // of the first GPUs with CUDA

// The same without bank conflicts: a place is left out after every 16 elements, and a thread's are half an array apart.
extern "C" __global__ void scan_best(float *output, const float *input, int elements)
{
    extern __shared__ float element[];
    auto place = [](int i) { return i + (i >> BANKS_LOG); };
    int left = threadIdx.x;
    int right = left + elements / 2;
    input += blockIdx.x * elements;
    output += blockIdx.x * elements;

    element[place(left)] = input[left];
    element[place(right)] = input[right];
    up_and_down(element, elements, place);
    output[left] = element[place(left)];
    output[right] = element[place(right)];
}
