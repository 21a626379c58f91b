/* Error checks, command-line flags and a timer for the samples of this folder. */
#ifndef SAMPLE_COMMON_H_
#define SAMPLE_COMMON_H_

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

template <typename T>
void check(T result, char const *const func, const char *const file, int const line)
{
    if (result) {
        fprintf(stderr, "%s:%d: code %d (%s) from \"%s\"\n", file, line, static_cast<unsigned int>(result),
                cudaGetErrorName(result), func);
        exit(EXIT_FAILURE);
    }
}

#define checkCudaErrors(val)  check((val), #val, __FILE__, __LINE__)
#define getLastCudaError(msg) getLast_(msg, __FILE__, __LINE__)

inline void getLast_(const char *message, const char *file, const int line)
{
    cudaError_t err = cudaGetLastError();
    if (cudaSuccess != err) {
        fprintf(stderr, "%s(%i): %s: (%d) %s.\n", file, line, message, static_cast<int>(err), cudaGetErrorString(err));
        exit(EXIT_FAILURE);
    }
}

/* -name or --name or -name=value */
inline const char *flag(int argc, const char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        while (*s == '-') s++;
        size_t n = strlen(name);
        if (s != argv[i] && !strncmp(s, name, n) && (s[n] == '\0' || s[n] == '='))
            return s[n] ? s + n + 1 : "";
    }
    return nullptr;
}

inline int flag_int(int argc, const char **argv, const char *name, int otherwise)
{
    const char *s = flag(argc, argv, name);
    return s && *s ? atoi(s) : otherwise;
}

class StopWatch {
  public:
    StopWatch() { reset(); }
    void reset() { start_ = std::chrono::high_resolution_clock::now(); }
    float ms() const
    {
        return std::chrono::duration<float, std::milli>(std::chrono::high_resolution_clock::now() - start_).count();
    }

  private:
    std::chrono::high_resolution_clock::time_point start_;
};

#endif // SAMPLE_COMMON_H_
