// Every kind of variable and parameter.
// nvcc -ptx -arch=compute_75 declarations.cu -o declarations_75.ptx; the same with compute_100

struct Point {
    char tag;
    float weight;
    int *target;
    double place;
    const char *name;
    short history[3];
};

__constant__ float coefficients[8] = {1.0f, 2.0f, 3.5f, -4e10f};
__device__ int counter = -7;
__device__ short matrix[2][3][4] = {{{1, 2}, {3}}, {{-1}}};
__device__ const char *message = "hello\n";
__device__ short *inner = &matrix[1][1][2];
__device__ Point points[2] = {{'a', 1.5f, &counter, 2.5, "first", {1, 2, 3}}, {'b', -1.5f, nullptr, 0.0, "second", {9}}};
__device__ double half = 0.5;
__device__ float empty[100];
extern __shared__ float dynamic[];

extern "C" __global__ void declarations(Point point, float4 vector, char small, const float *__restrict__ input,
                                        float *output)
{
    __shared__ double2 tile[4][8];
    int thread = threadIdx.x;
    tile[thread & 3][thread & 7] = make_double2(input[thread], half);
    dynamic[thread] = coefficients[thread & 7] + small;
    __syncthreads();
    output[thread] = tile[1][2].y + dynamic[thread ^ 1] + point.history[thread % 3] + vector.w + *points[thread & 1].target +
                     *inner + message[thread & 3] + empty[thread] + points[1].name[thread];
    if (thread == 0) {
        atomicAdd(&counter, 1);
        empty[3] = 1.0f;
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) bounded(int *output) { output[threadIdx.x] = 1; }
