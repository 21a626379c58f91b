/* All-pairs gravity for float and double: type traits choose the vector type, tiles stand in dynamic shared memory. */
#include <cassert>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>
#include "sample_common.h"

namespace nbody {

template <typename T> struct vec3 { typedef float Type; };
template <> struct vec3<float>  { typedef float3 Type; };
template <> struct vec3<double> { typedef double3 Type; };
template <typename T> struct vec4 { typedef float Type; };
template <> struct vec4<float>  { typedef float4 Type; };
template <> struct vec4<double> { typedef double4 Type; };

__constant__ float  softeningSquared;
__constant__ double softeningSquared_fp64;

template <typename T> __device__ T getSofteningSquared() { return softeningSquared; }
template <> __device__ double getSofteningSquared<double>() { return softeningSquared_fp64; }

cudaError_t setSoftening(float s) { return cudaMemcpyToSymbol(softeningSquared, &s, sizeof(float)); }
cudaError_t setSoftening(double s) { return cudaMemcpyToSymbol(softeningSquared_fp64, &s, sizeof(double), 0, cudaMemcpyHostToDevice); }

template <class T> struct TileMemory {
    __device__ static T *get()
    {
        extern __shared__ __align__(32) unsigned char raw[];
        return reinterpret_cast<T *>(raw);
    }
};

__device__ inline float  inverse_root(float x)  { return rsqrtf(x); }
__device__ inline double inverse_root(double x) { return rsqrt(x); }

template <typename T>
__device__ inline void pull(typename vec3<T>::Type &a, const typename vec4<T>::Type &me, const typename vec4<T>::Type &it)
{
    T dx = it.x - me.x, dy = it.y - me.y, dz = it.z - me.z;
    T r2 = dx * dx + dy * dy + dz * dz + getSofteningSquared<T>();
    assert(r2 > T(0));
    T inverse = inverse_root(r2);
    T s = it.w * inverse * inverse * inverse;
    a.x += dx * s;
    a.y += dy * s;
    a.z += dz * s;
}

template <typename T, int UNROLL = 8>
__global__ void integrate(typename vec4<T>::Type *__restrict__ after, const typename vec4<T>::Type *__restrict__ before,
                          typename vec4<T>::Type *velocity, unsigned int n, T dt, T damping)
{
    typedef typename vec4<T>::Type body_t;
    body_t *tile = TileMemory<body_t>::get();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    body_t me = before[i < n ? i : 0];
    typename vec3<T>::Type a = {0, 0, 0};

    for (unsigned first = 0; first < n; first += blockDim.x) {
        body_t other = {0, 0, 0, 0};              // no mass: no pull
        if (first + threadIdx.x < n) other = before[first + threadIdx.x];
        tile[threadIdx.x] = other;
        __syncthreads();
#pragma unroll UNROLL
        for (unsigned j = 0; j < blockDim.x; j++)
            pull<T>(a, me, tile[j]);
        __syncthreads();
    }
    if (i >= n) return;
    body_t v = velocity[i];
    v.x = (v.x + a.x * dt) * damping;
    v.y = (v.y + a.y * dt) * damping;
    v.z = (v.z + a.z * dt) * damping;
    me.x += v.x * dt;
    me.y += v.y * dt;
    me.z += v.z * dt;
    after[i] = me;
    velocity[i] = v;
}

template <typename T> class System {
  public:
    System(unsigned n, T softening) : n_(n), softening2_(softening * softening), position_(4 * n), velocity_(4 * n, T(0))
    {
        std::mt19937 engine(7);
        std::uniform_real_distribution<T> uniform(T(-1), T(1));
        for (unsigned i = 0; i < 4 * n; i++) position_[i] = i % 4 == 3 ? T(1) / n : uniform(engine);
        checkCudaErrors(setSoftening(softening2_));
        for (auto &p : d_position_) checkCudaErrors(cudaMalloc((void **)&p, bytes()));
        checkCudaErrors(cudaMalloc((void **)&d_velocity_, bytes()));
        checkCudaErrors(cudaMemcpy(d_position_[0], position_.data(), bytes(), cudaMemcpyHostToDevice));
        checkCudaErrors(cudaMemset(d_velocity_, 0, bytes()));
    }
    virtual ~System()
    {
        for (auto p : d_position_) cudaFree(p);
        cudaFree(d_velocity_);
    }

    void update(T dt, T damping, int block)
    {
        int blocks = (n_ + block - 1) / block;
        size_t shared = block * sizeof(body);
        integrate<T><<<blocks, block, shared>>>(d_position_[1 - now_], d_position_[now_], d_velocity_, n_, dt, damping);
        getLastCudaError("integrate");
        now_ = 1 - now_;
    }

    void update_host(T dt, T damping)
    {
        std::vector<T> before = position_;
        for (unsigned i = 0; i < n_; i++) {
            T a[3] = {0, 0, 0};
            for (unsigned j = 0; j < n_; j++) {
                T d[3], r2 = softening2_;
                for (int k = 0; k < 3; k++) d[k] = before[4 * j + k] - before[4 * i + k], r2 += d[k] * d[k];
                for (int k = 0; k < 3; k++) a[k] += d[k] * before[4 * j + 3] / (r2 * std::sqrt(r2));
            }
            for (int k = 0; k < 3; k++) {
                velocity_[4 * i + k] = (velocity_[4 * i + k] + a[k] * dt) * damping;
                position_[4 * i + k] += velocity_[4 * i + k] * dt;
            }
        }
    }

    double worst()
    {
        std::vector<T> p(4 * n_);
        checkCudaErrors(cudaMemcpy(p.data(), d_position_[now_], bytes(), cudaMemcpyDeviceToHost));
        double w = 0;
        for (unsigned i = 0; i < 4 * n_; i++) w = std::fmax(w, std::fabs(double(p[i]) - double(position_[i])));
        return w;
    }

  private:
    using body = typename vec4<T>::Type;
    size_t bytes() const { return n_ * sizeof(body); }
    unsigned n_;
    T softening2_;
    std::vector<T> position_, velocity_;
    body *d_position_[2], *d_velocity_;
    int now_ = 0;
};

} // namespace nbody

template <typename T> static bool demo(int n, int steps, int block)
{
    nbody::System<T> system(n, T(0.1));
    cudaEvent_t start, stop;
    checkCudaErrors(cudaEventCreate(&start));
    checkCudaErrors(cudaEventCreate(&stop));
    checkCudaErrors(cudaEventRecord(start, 0));
    for (int s = 0; s < steps; s++) system.update(T(0.01), T(0.995), block);
    checkCudaErrors(cudaEventRecord(stop, 0));
    checkCudaErrors(cudaEventSynchronize(stop));
    float ms = 0;
    checkCudaErrors(cudaEventElapsedTime(&ms, start, stop));
    for (int s = 0; s < steps; s++) system.update_host(T(0.01), T(0.995));
    double worst = system.worst();
    printf("%d bodies, %d steps: %.3f ms, %.2f G interactions/s, largest difference %g\n", n, steps, ms,
           1e-6 * n * n * steps / ms, worst);
    return worst < 1e-4;
}

int main(int argc, const char **argv)
{
    int n = flag_int(argc, argv, "numbodies", 300), steps = flag_int(argc, argv, "i", 3);
    int block = flag_int(argc, argv, "block", 64);
    bool fp64 = flag(argc, argv, "fp64") != nullptr;
    bool good = demo<float>(n, steps, block);
    if (fp64) good = demo<double>(n, steps, block) && good;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
