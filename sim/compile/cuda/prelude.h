// What every host compiler of CUDA has included before the first line of a program, as far as device code can use it.
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;  // as in the headers of cuda::std
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef long long intmax_t;
typedef unsigned long long uintmax_t;
typedef long ssize_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef struct lockstep_file FILE;

// Programs ask which system this is, and for what its header <unistd.h> says, which comes with most others.
#define __linux__ 1
#define __unix__ 1
#define _POSIX_VERSION 200809L
#define _POSIX2_VERSION 200809L
#define _POSIX_TIMERS 200809L
#define _POSIX_MONOTONIC_CLOCK 0
#define _POSIX_THREADS 200809L
#define _XOPEN_VERSION 700

namespace cuda {
namespace std {}
}
namespace std {
using namespace cuda::std;  // its headers are there if a kernel mentions std
}

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647

#ifndef CHAR_BIT
#define CHAR_BIT 8
#endif
#ifndef INT_MAX
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN (-128)
#define CHAR_MAX 127
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#endif
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-INT64_MAX - 1L)
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX 18446744073709551615UL

#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_DIG 6
#define DBL_DIG 15
#define FLT_MAX 3.40282346638528859812e+38F
#define FLT_MIN 1.17549435082228750797e-38F
#define FLT_EPSILON 1.19209289550781250000e-7F
#define DBL_MAX 1.79769313486231570815e+308
#define DBL_MIN 2.22507385850720138309e-308
#define DBL_EPSILON 2.22044604925031308085e-16
#endif

// In constants of the program, too, which take no call.
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000LL)
#define HUGE_VALF INFINITY
#endif
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

// CUDA's runtime as kernels can call it. None of it has a body here, so the kernels that call it are refused by name.
extern "C" {
__device__ void *cudaGetParameterBufferV2(void *kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
__device__ cudaError_t cudaLaunchDeviceV2(void *parameters, cudaStream_t stream);
__device__ cudaError_t cudaDeviceSynchronize();
__device__ cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
__device__ cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit);
__device__ cudaError_t cudaGetDevice(int *device);
__device__ cudaError_t cudaGetDeviceCount(int *count);
__device__ cudaError_t cudaGetLastError();
__device__ cudaError_t cudaPeekAtLastError();
__device__ const char *cudaGetErrorName(cudaError_t error);
__device__ const char *cudaGetErrorString(cudaError_t error);
__device__ cudaError_t cudaRuntimeGetVersion(int *version);
__device__ cudaError_t cudaMalloc(void **pointer, size_t bytes);
__device__ cudaError_t cudaFree(void *pointer);
__device__ cudaError_t cudaMemcpyAsync(
    void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = 0);
__device__ cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = 0);
__device__ cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
__device__ cudaError_t cudaStreamDestroy(cudaStream_t stream);
__device__ cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
__device__ cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
__device__ cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
__device__ cudaError_t cudaEventDestroy(cudaEvent_t event);
__device__ cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, const void *kernel, int threads, size_t shared_bytes);
}
template <typename T>
__device__ __forceinline__ cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    return cudaMalloc((void **)pointer, bytes);
}

// References to textures and surfaces, which CUDA has given up: constants that hold an object.
template <typename T, int dimensions, cudaTextureReadMode mode>
struct lockstep_texture_result {
    typedef T type;
};
#define LOCKSTEP_NORMALIZED(T, F)                                                      \
    template <int dimensions>                                                          \
    struct lockstep_texture_result<T, dimensions, cudaReadModeNormalizedFloat> {       \
        typedef F type;                                                                \
    };
LOCKSTEP_NORMALIZED(char, float)
LOCKSTEP_NORMALIZED(signed char, float)
LOCKSTEP_NORMALIZED(unsigned char, float)
LOCKSTEP_NORMALIZED(short, float)
LOCKSTEP_NORMALIZED(unsigned short, float)
LOCKSTEP_NORMALIZED(char1, float1)
LOCKSTEP_NORMALIZED(uchar1, float1)
LOCKSTEP_NORMALIZED(short1, float1)
LOCKSTEP_NORMALIZED(ushort1, float1)
LOCKSTEP_NORMALIZED(char2, float2)
LOCKSTEP_NORMALIZED(uchar2, float2)
LOCKSTEP_NORMALIZED(short2, float2)
LOCKSTEP_NORMALIZED(ushort2, float2)
LOCKSTEP_NORMALIZED(char4, float4)
LOCKSTEP_NORMALIZED(uchar4, float4)
LOCKSTEP_NORMALIZED(short4, float4)
LOCKSTEP_NORMALIZED(ushort4, float4)
#undef LOCKSTEP_NORMALIZED

template <typename T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct lockstep_texture {
    typedef typename lockstep_texture_result<T, dimensions, mode>::type result;
    cudaTextureObject_t object;
};
template <typename T, int d, cudaTextureReadMode m>
using lockstep_result = typename lockstep_texture<T, d, m>::result;

template <typename T, int d, cudaTextureReadMode m>
__device__ __forceinline__ lockstep_result<T, d, m> tex1Dfetch(const lockstep_texture<T, d, m> &t, int x) {
    return tex1Dfetch<lockstep_result<T, d, m>>(t.object, x);
}
template <typename T, int d, cudaTextureReadMode m>
__device__ __forceinline__ lockstep_result<T, d, m> tex1D(const lockstep_texture<T, d, m> &t, float x) {
    return tex1D<lockstep_result<T, d, m>>(t.object, x);
}
template <typename T, int d, cudaTextureReadMode m>
__device__ __forceinline__ lockstep_result<T, d, m> tex2D(const lockstep_texture<T, d, m> &t, float x, float y) {
    return tex2D<lockstep_result<T, d, m>>(t.object, x, y);
}
template <typename T, int d, cudaTextureReadMode m>
__device__ __forceinline__ lockstep_result<T, d, m> tex3D(
    const lockstep_texture<T, d, m> &t, float x, float y, float z) {
    return tex3D<lockstep_result<T, d, m>>(t.object, x, y, z);
}

template <typename T, int dimensions = cudaSurfaceType1D>
struct lockstep_surface {
    cudaSurfaceObject_t object;
    __device__ __forceinline__ operator cudaSurfaceObject_t() const { return object; }
};
