//	Anisotropic diffusion of a speckled picture (PGM in, PGM out).

#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#define fp float

#ifdef RD_WG_SIZE_0
	#define THREADS RD_WG_SIZE_0
#else
	#define THREADS 256
#endif

#include "kernels/despeckle.cu"

// #define OUTPUT

static double clock_s(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* binary greyscale, no comments in its header */
static unsigned char *read_pgm(const char *name, int *rows, int *cols)
{
	FILE *f = fopen(name, "rb");
	int most;
	if (f == NULL || fscanf(f, "P5 %d %d %d", cols, rows, &most) != 3 || most != 255) {
		printf("The file \"%s\" was not opened, or is not an 8-bit PGM\n", name);
		exit(EXIT_FAILURE);
	}
	fgetc(f);
	unsigned char *bytes = (unsigned char *)malloc(*rows * *cols);
	if (fread(bytes, 1, *rows * *cols, f) != (size_t)(*rows * *cols)) {
		puts("short file");
		exit(EXIT_FAILURE);
	}
	fclose(f);
	return bytes;
}

static void write_pgm(const char *name, const fp *image, int rows, int cols)
{
	FILE *f = fopen(name, "wb");
	fprintf(f, "P5\n%d %d\n255\n", cols, rows);
	for (int i = 0; i < rows * cols; i++)
		fputc((int)(logf(image[i]) * 255 + 0.5f), f);
	fclose(f);
}

int main(int argc, char *argv [])
{
	int rows, cols, iterations, i;
	fp lambda;
	unsigned char *bytes;

	if (argc == 4) {
		bytes = read_pgm(argv[3], &rows, &cols);
	} else if (argc == 5) {
		rows = atoi(argv[3]);
		cols = atoi(argv[4]);
		bytes = (unsigned char *)malloc(rows * cols);
		srand(5);
		for (i = 0; i < rows * cols; i++)
			bytes[i] = ((i / cols / 8 + i % cols / 8) % 2 ? 160 : 60) + rand() % 40;
	} else {
		printf("usage: %s iterations lambda (file | rows cols)\n", argv[0]);
		return 0;
	}
	iterations = atoi(argv[1]);
	lambda = atof(argv[2]);

	long n = (long)rows * cols;
	int blocks = (int)((n + THREADS - 1) / THREADS);
	size_t mem = n * sizeof(fp);
	fp *d_image, *d_next, *d_coefficient, *d_sums, *d_squares;
	unsigned char *d_bytes;
	cudaMalloc((void **)&d_image, mem);
	cudaMalloc((void **)&d_next, mem);
	cudaMalloc((void **)&d_coefficient, mem);
	cudaMalloc((void **)&d_bytes, n);
	cudaMalloc((void **)&d_sums, blocks * sizeof(fp));
	cudaMalloc((void **)&d_squares, blocks * sizeof(fp));
	cudaMemcpy(d_bytes, bytes, n, cudaMemcpyHostToDevice);

	fp *sums = (fp *)malloc(blocks * sizeof(fp)), *squares = (fp *)malloc(blocks * sizeof(fp));
	fp *image = (fp *)malloc(mem);
	double first = 0, last = 0, begin = clock_s();

	widen<<<blocks, THREADS>>>(d_bytes, d_image, n);
	for (i = 0; i < iterations; i++) {
		moments<<<blocks, THREADS>>>(d_image, d_sums, d_squares, n);
		cudaMemcpy(sums, d_sums, blocks * sizeof(fp), cudaMemcpyDeviceToHost);
		cudaMemcpy(squares, d_squares, blocks * sizeof(fp), cudaMemcpyDeviceToHost);
		double sum = 0, square = 0;
		for (int b = 0; b < blocks; b++) {
			sum += sums[b];
			square += squares[b];
		}
		double mean = sum / n, variance = square / n - mean * mean;
		fp q0 = (fp)(variance / (mean * mean));
		if (i == 0) first = variance;
		last = variance;

		diffuse<<<blocks, THREADS>>>(d_image, d_coefficient, rows, cols, q0);
		smooth<<<blocks, THREADS>>>(d_image, d_coefficient, d_next, rows, cols, lambda);
		fp *t = d_image; d_image = d_next; d_next = t;
	}
	cudaDeviceSynchronize();
	printf("%d iterations in %f s; variance %f, then %f\n", iterations, clock_s() - begin, first, last);

	cudaMemcpy(image, d_image, mem, cudaMemcpyDeviceToHost);
#ifdef OUTPUT
	write_pgm("despeckled.pgm", image, rows, cols);
#else
	(void)write_pgm;
#endif
	cudaFree(d_image); cudaFree(d_next); cudaFree(d_coefficient);
	cudaFree(d_bytes); cudaFree(d_sums); cudaFree(d_squares);
	free(bytes); free(image); free(sums); free(squares);
	return last <= first ? 0 : 1;
}
