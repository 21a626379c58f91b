// Sparse matrix (jagged diagonals, rows by falling length) times a vector; the vector comes through a texture or __ldg.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>
#include "bench.h"

using namespace std;

static const int MAX_DIAGONALS = 1024;
__constant__ int diagonal_start[MAX_DIAGONALS];
__constant__ int longest_row[MAX_DIAGONALS];

enum class Path { texture, readonly };

template <Path PATH> struct Vector;

template <> struct Vector<Path::texture> {
  cudaTextureObject_t object;
  __device__ float operator[](int i) const { return tex1Dfetch<float>(object, i); }
};

template <> struct Vector<Path::readonly> {
  const float *data;
  __device__ float operator[](int i) const { return __ldg(data + i); }
};

template <Path PATH>
__global__ void spmv_jds(float *dst_vector, const float *d_data, const int *d_index, const int *d_perm,
                         Vector<PATH> x_vec, const int dim)
{
  int ix = blockIdx.x * blockDim.x + threadIdx.x;
  int warp_id = ix >> 5;
  if (ix < dim) {
    float sum = 0.0f;
    int bound = longest_row[warp_id];   // the longest row of the warp
    for (int k = 0; k < bound; k++) {
      int j = diagonal_start[k] + ix;
      // rows beyond the end of a diagonal have no element there
      if (j < diagonal_start[k + 1])
        sum += d_data[j] * x_vec[d_index[j]];
    }
    dst_vector[d_perm[ix]] = sum;
  }
}

struct Coo { int row, col; float value; };

static pair<int, vector<Coo>> read_matrix_market(const char *name)
{
  vector<Coo> elements;
  int rows = 0, cols = 0, nnz = 0;
  FILE *f = name ? fopen(name, "r") : nullptr;
  if (name && !f) { cerr << "cannot open " << name << endl; exit(1); }
  if (!f) {                             // a band with a few full rows
    rows = 700;
    for (int r = 0; r < rows; r++)
      for (int c = max(0, r - r % 7); c < min(rows, r + 3 + r % 5); c++)
        elements.push_back({ r, c, 1.0f / (1 + abs(r - c)) });
    return { rows, elements };
  }
  char line[256];
  while (fgets(line, sizeof line, f) && line[0] == '%')
    ;
  if (sscanf(line, "%d %d %d", &rows, &cols, &nnz) != 3 || rows != cols) {
    cerr << "not a square matrix: " << name << endl;
    exit(1);
  }
  for (Coo e; fscanf(f, "%d %d %f", &e.row, &e.col, &e.value) == 3;) {
    e.row--, e.col--;
    elements.push_back(e);
  }
  fclose(f);
  return { rows, elements };
}

template <class T> T *upload(const vector<T> &v)
{
  T *d = nullptr;
  cudaMalloc((void **)&d, v.size() * sizeof(T));
  cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  CUDA_ERRCK;
  return d;
}

int main(int argc, char **argv)
{
  bench_options options = bench_read_options(&argc, argv);
  auto [rows, elements] = read_matrix_market(options.n_inputs ? options.inputs[0] : nullptr);

  const int dim = rows;

  // into jagged diagonals
  vector<vector<pair<int, float>>> by_row(dim);
  for (const auto &e : elements) by_row[e.row].emplace_back(e.col, e.value);
  vector<int> perm(dim);
  iota(perm.begin(), perm.end(), 0);
  stable_sort(perm.begin(), perm.end(), [&](int a, int b) { return by_row[a].size() > by_row[b].size(); });
  vector<float> data;
  vector<int> index, ptr(1, 0), longest;
  const size_t depth = by_row[perm[0]].size();
  if (depth + 1 > (size_t)MAX_DIAGONALS || (dim + 31) / 32 > MAX_DIAGONALS) {
    cerr << "the matrix is too large\n";
    return 1;
  }
  for (size_t k = 0; k < depth; k++) {
    for (int r = 0; r < dim && by_row[perm[r]].size() > k; r++) {
      index.push_back(by_row[perm[r]][k].first);
      data.push_back(by_row[perm[r]][k].second);
    }
    ptr.push_back((int)data.size());
  }
  for (int r = 0; r < dim; r += 32) longest.push_back((int)by_row[perm[r]].size());
  vector<float> x(dim), result(dim);
  for (int i = 0; i < dim; i++) x[i] = (i % 10) * 0.1f;

  float *d_data = upload(data), *d_x = upload(x), *d_y = upload(result);
  int *d_index = upload(index), *d_perm = upload(perm);
  cudaMemcpyToSymbol(diagonal_start, ptr.data(), ptr.size() * sizeof(int));
  cudaMemcpyToSymbol(longest_row, longest.data(), longest.size() * sizeof(int));

  cudaResourceDesc res;
  memset(&res, 0, sizeof res);
  res.resType = cudaResourceTypeLinear;
  res.res.linear.devPtr = d_x;
  res.res.linear.desc = cudaCreateChannelDesc<float>();
  res.res.linear.sizeInBytes = dim * sizeof(float);
  cudaTextureDesc td;
  memset(&td, 0, sizeof td);
  td.readMode = cudaReadModeElementType;
  Vector<Path::texture> tex;
  cudaCreateTextureObject(&tex.object, &res, &td, nullptr);
  CUDA_ERRCK;

  int failures = 0;
  auto check = [&](const string &label) {
    cudaMemcpy(result.data(), d_y, dim * sizeof(float), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int r = 0; r < dim; r++) {
      double sum = 0;
      for (auto [c, v] : by_row[r]) sum += double(v) * x[c];
      worst = max(worst, fabs(sum - result[r]));
    }
    ostringstream s;
    s << label << ": largest difference " << worst;
    puts(s.str().c_str());
    failures += worst > 1e-4;
  };
  const int block = 192, grid = (dim + block - 1) / block;
  spmv_jds<Path::texture><<<grid, block>>>(d_y, d_data, d_index, d_perm, tex, dim);
  check("texture");
  cudaMemset(d_y, 0, dim * sizeof(float));
  spmv_jds<<<grid, block>>>(d_y, d_data, d_index, d_perm, Vector<Path::readonly>{d_x}, dim);
  check("__ldg");

  cudaDestroyTextureObject(tex.object);
  for (void *p : initializer_list<void *>{ d_data, d_x, d_y, d_index, d_perm }) cudaFree(p);
  return failures;
}
