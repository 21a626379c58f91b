// Direct, recursive, indirect and virtual calls, structs by value, printf.
// nvcc -ptx -arch=compute_75 calls.cu -o calls_75.ptx; the same with compute_100; with -G as calls_debug_75.ptx, whose
// debug sections are cut to a few lines
#include <cstdio>

struct Body {
    float x, y, z;
    int steps;
};

__device__ __noinline__ Body moved(Body body, float by, char steps)
{
    body.x *= by;
    body.steps += steps;
    return body;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ float plus(float x, int k) { return x + k; }
__device__ float times(float x, int k) { return x * k; }
typedef float (*Operation)(float, int);
__device__ Operation operations[2] = {plus, times};

struct Shape {
    __device__ virtual float area() = 0;
};
struct Square : Shape {
    float side;
    __device__ float area() override { return side * side; }
};
struct Unit : Shape {
    __device__ float area() override { return 1.0f; }
};

extern "C" __global__ void calls(Body *bodies, int *numbers, float *values, int k)
{
    int thread = threadIdx.x;
    bodies[thread] = moved(bodies[thread], 2.0f, thread);
    numbers[thread] = fibonacci(thread);
    values[thread] = operations[k](values[thread], k);
    Square square;
    square.side = k;
    Unit unit;
    Shape *shape = k > 2 ? (Shape *)&square : (Shape *)&unit;
    values[thread] += shape->area();
    printf("%d %f\n", thread, values[thread]);
}
