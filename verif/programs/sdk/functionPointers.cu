/* Edge filters that the host chooses through pointers to device functions. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include "sample_common.h"

typedef unsigned char Pixel;
typedef unsigned char (*NeighbourFunction)(Pixel, Pixel, Pixel, Pixel, Pixel, Pixel, Pixel, Pixel, Pixel, float);
typedef unsigned char (*PointFunction)(unsigned char, float);

enum Filter : int { FILTER_SOBEL, FILTER_BOX, FILTER_MEDIAN, LAST_FILTER };
enum { POINT_NONE = 0, POINT_THRESHOLD = 1, LAST_POINT = 2 };

/* a 3 x 3 neighbourhood, row by row: (ul um ur / ml mm mr / ll lm lr) */
__device__ unsigned char sobel(Pixel ul, Pixel um, Pixel ur, Pixel ml, Pixel mm, Pixel mr, Pixel ll, Pixel lm,
                                      Pixel lr, float scale)
{
    int across = ur + 2 * mr + lr - ul - 2 * ml - ll;
    int down = ul + 2 * um + ur - ll - 2 * lm - lr;
    int sum = (int)(scale * (abs(across) + abs(down)));
    return (unsigned char)((sum < 0) ? 0 : ((sum > 255) ? 255 : sum));
}

__device__ unsigned char box(Pixel ul, Pixel um, Pixel ur, Pixel ml, Pixel mm, Pixel mr, Pixel ll, Pixel lm,
                                    Pixel lr, float scale)
{
    int sum = (int)((ul + um + ur + ml + mm + mr + ll + lm + lr) / 9 * scale);
    return (unsigned char)(sum > 255 ? 255 : sum);
}

#define ORDER(a, b) { Pixel t_ = min(a, b); b = max(a, b); a = t_; }

__device__ __noinline__ unsigned char median(Pixel p0, Pixel p1, Pixel p2, Pixel p3, Pixel p4, Pixel p5,
                                                    Pixel p6, Pixel p7, Pixel p8, float)
{
    ORDER(p1, p2) ORDER(p4, p5) ORDER(p7, p8) ORDER(p0, p1) ORDER(p3, p4) ORDER(p6, p7)
    ORDER(p1, p2) ORDER(p4, p5) ORDER(p7, p8) ORDER(p0, p3) ORDER(p5, p8) ORDER(p4, p7)
    ORDER(p3, p6) ORDER(p1, p4) ORDER(p2, p5) ORDER(p4, p7) ORDER(p4, p2) ORDER(p6, p4)
    ORDER(p4, p2)
    return p4;
}

__device__ unsigned char threshold(unsigned char in, float thresh) { return in > (unsigned char)(thresh * 255.0f) ? 255 : 0; }

// the table that kernels use, and the addresses as the device sees them
__device__ NeighbourFunction neighbourTable[LAST_FILTER];
__device__ PointFunction pointTable[LAST_POINT];
__device__ NeighbourFunction sobelAddress = sobel;
__device__ NeighbourFunction boxAddress = box;
__device__ NeighbourFunction medianAddress = median;
__device__ PointFunction thresholdAddress = threshold;

extern "C" __global__ void filterKernel(Pixel *out, const Pixel *in, unsigned int pitch, int w, int h, float scale,
                                        int blockOperation, int pointOperation)
{
    const Pixel *row = in + blockIdx.x * pitch;
    int y = blockIdx.x;
    int above = y > 0 ? -(int)pitch : 0, below = y < h - 1 ? (int)pitch : 0;

    for (int i = threadIdx.x; i < w; i += blockDim.x) {
        const Pixel *p = row + i;
        int l = i > 0 ? -1 : 0, r = i < w - 1 ? 1 : 0;
        Pixel value = (*(neighbourTable[blockOperation]))(p[above + l], p[above], p[above + r], p[l], p[0], p[r],
                                                           p[below + l], p[below], p[below + r], scale);
        if (pointTable[pointOperation] != NULL)
            value = (*pointTable[pointOperation])(value, 150.0f / 255.0f);
        out[y * w + i] = value;
    }
}

extern "C" void fillTables(void)
{
    NeighbourFunction h_block[LAST_FILTER];
    PointFunction h_point[LAST_POINT] = {NULL, NULL};
    checkCudaErrors(cudaMemcpyFromSymbol(&h_block[FILTER_SOBEL], sobelAddress, sizeof(NeighbourFunction)));
    checkCudaErrors(cudaMemcpyFromSymbol(&h_block[FILTER_BOX], boxAddress, sizeof(NeighbourFunction)));
    checkCudaErrors(cudaMemcpyFromSymbol(&h_block[FILTER_MEDIAN], medianAddress, sizeof(NeighbourFunction)));
    checkCudaErrors(cudaMemcpyFromSymbol(&h_point[POINT_THRESHOLD], thresholdAddress, sizeof(PointFunction)));
    checkCudaErrors(cudaMemcpyToSymbol(neighbourTable, h_block, sizeof h_block));
    checkCudaErrors(cudaMemcpyToSymbol(pointTable, h_point, sizeof h_point));
}

static Pixel on_host(const std::vector<Pixel> &image, int w, int h, int x, int y, Filter filter)
{
    std::vector<int> n;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int u = x + dx < 0 || x + dx >= w ? x : x + dx, v = y + dy < 0 || y + dy >= h ? y : y + dy;
            n.push_back(image[v * w + u]);
        }
    switch (filter) {
    case FILTER_SOBEL: {
        int sum = abs(n[2] + 2 * n[5] + n[8] - n[0] - 2 * n[3] - n[6]) + abs(n[0] + 2 * n[1] + n[2] - n[6] - 2 * n[7] - n[8]);
        return sum > 255 ? 255 : sum;
    }
    case FILTER_BOX: {
        int sum = 0;
        for (int v : n) sum += v;
        return sum / 9;
    }
    default:
        for (int i = 0; i < 9; i++)
            for (int j = i + 1; j < 9; j++)
                if (n[j] < n[i]) std::swap(n[i], n[j]);
        return n[4];
    }
}

int main(int argc, char **argv)
{
    const int w = flag_int(argc, (const char **)argv, "width", 80), h = flag_int(argc, (const char **)argv, "height", 40);
    std::vector<Pixel> image(w * h), result(w * h);
    for (int i = 0; i < w * h; i++) image[i] = (i % w * 5 + i / w * 3 + (i * 7919) % 31) & 255;

    Pixel *d_in, *d_out;
    size_t pitch;
    checkCudaErrors(cudaMallocPitch((void **)&d_in, &pitch, w, h));
    checkCudaErrors(cudaMalloc((void **)&d_out, w * h));
    checkCudaErrors(cudaMemcpy2D(d_in, pitch, image.data(), w, w, h, cudaMemcpyHostToDevice));
    fillTables();

    const std::string names[] = {"Sobel", "box", "median"};
    int errors = 0;
    for (int filter = 0; filter < LAST_FILTER; filter++)
        for (int point = POINT_NONE; point < LAST_POINT; point++) {
            filterKernel<<<h, 96>>>(d_out, d_in, (unsigned)pitch, w, h, 1.0f, filter, point);
            getLastCudaError("filterKernel");
            checkCudaErrors(cudaMemcpy(result.data(), d_out, w * h, cudaMemcpyDeviceToHost));
            int wrong = 0;
            for (int i = 0; i < w * h; i++) {
                Pixel expected = on_host(image, w, h, i % w, i / w, (Filter)filter);
                if (point == POINT_THRESHOLD) expected = expected > 150 ? 255 : 0;
                wrong += expected != result[i];
            }
            printf("%s%s: %d pixels differ\n", names[filter].c_str(), point ? " and threshold" : "", wrong);
            errors += wrong;
        }
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    exit(errors ? EXIT_FAILURE : EXIT_SUCCESS);
}
