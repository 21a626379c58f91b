// Kernels of despeckle.cu, which includes this file after defining `fp` and THREADS.

__global__ void widen(const unsigned char *bytes, fp *image, long n)
{
	long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
	if (i < n)
		image[i] = expf(bytes[i] / (fp)255);
}

/* One pair of sums (of values, of squares) per block. */
__global__ void moments(const fp *image, fp *sums, fp *squares, long n)
{
	__shared__ fp s[THREADS];
	__shared__ fp q[THREADS];
	long i = blockIdx.x * (long)THREADS + threadIdx.x;
	int tx = threadIdx.x;
	s[tx] = i < n ? image[i] : (fp)0;
	q[tx] = s[tx] * s[tx];
	for (int width = THREADS / 2; width > 0; width >>= 1) {
		__syncthreads();
		if (tx < width) {
			s[tx] += s[tx + width];
			q[tx] += q[tx + width];
		}
	}
	if (tx == 0) {
		sums[blockIdx.x] = s[0];
		squares[blockIdx.x] = q[0];
	}
}

__global__ void diffuse(const fp *image, fp *coefficient, int rows, int cols, fp q0)
{
	int i = blockIdx.x * THREADS + threadIdx.x;
	if (i >= rows * cols) return;
	int r = i / cols, c = i % cols;
	fp here = image[i];
	fp n = image[r > 0 ? i - cols : i] - here, s = image[r < rows - 1 ? i + cols : i] - here;
	fp w = image[c > 0 ? i - 1 : i] - here, e = image[c < cols - 1 ? i + 1 : i] - here;
	fp g2 = (n * n + s * s + w * w + e * e) / (here * here);
	fp l = (n + s + w + e) / here;
	fp q = ((fp)0.5 * g2 - l * l / (fp)16) / (((fp)1 + (fp)0.25 * l) * ((fp)1 + (fp)0.25 * l));
	fp k = (fp)1 / ((fp)1 + (q - q0) / (q0 * ((fp)1 + q0)));
	coefficient[i] = k < 0 ? (fp)0 : k > 1 ? (fp)1 : k;
}

__global__ void smooth(const fp *image, const fp *coefficient, fp *out, int rows, int cols, fp lambda)
{
	int i = blockIdx.x * THREADS + threadIdx.x;
	if (i >= rows * cols) return;
	int r = i / cols, c = i % cols;
	int south = r < rows - 1 ? i + cols : i, east = c < cols - 1 ? i + 1 : i;
	int north = r > 0 ? i - cols : i, west = c > 0 ? i - 1 : i;
	fp d = coefficient[i] * (image[north] + image[west] - 2 * image[i])
	     + coefficient[south] * (image[south] - image[i]) + coefficient[east] * (image[east] - image[i]);
	out[i] = image[i] + (fp)0.25 * lambda * d;
}
