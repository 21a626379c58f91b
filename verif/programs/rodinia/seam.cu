// Cheapest vertical seam through an energy image, a launch per strip of rows.
// usage: seam width height strip

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cuda.h>
#include <cuda_runtime.h>

#ifdef TIMING
#include <sys/time.h>
#endif

#define BLOCK 128
#define SEED 31

#define INSIDE(v, lo, hi)  ((v) >= (lo) && (v) <= (hi))
#define LEAST(a, b)        ((a) < (b) ? (a) : (b))
#define CLIP(v, lo, hi)    v = ((v) < (lo)) ? (lo) : (((v) > (hi)) ? (hi) : (v))

void run(int argc, char **argv);

int width, height, strip;
int *energy;
int **row_of;

void read_arguments(int argc, char **argv)
{
	if(argc != 4){
		printf("usage: %s width height strip (e.g. 1000 64 8)\n", argv[0]);
		exit(0);
	}
	width = atoi(argv[1]);
	height = atoi(argv[2]);
	strip = atoi(argv[3]);
	if(2*strip >= BLOCK){
		fprintf(stderr, "strip must be below %d\n", BLOCK/2);
		exit(1);
	}
	energy = new int[width*height];
	row_of = new int*[height];
	srand(SEED);
	for(int r=0; r<height; r++){
		row_of[r] = energy + r*width;
		for(int c=0; c<width; c++)
			row_of[r][c] = rand() % 256;
	}
}

/* A block advances BLOCK columns by `count` rows; the outer columns go stale, one more per row { and side }. */
__global__ void advance(const int *energy, const int *from, int *to, int width, int first, int count, int margin)
{
	__shared__ int cost[2][BLOCK];

	int useful = BLOCK - 2*margin;
	int tx = threadIdx.x;
	int column = blockIdx.x*useful - margin + tx;
	bool exists = INSIDE(column, 0, width-1);
	int now = 0;

	cost[now][tx] = exists ? from[column] : 0x3fffffff;
	__syncthreads();

	for(int step=0; step<count; step++){
		int left = tx-1, right = tx+1;
		CLIP(left, 0, BLOCK-1);
		CLIP(right, 0, BLOCK-1);
		int best = LEAST(LEAST(cost[now][left], cost[now][right]), cost[now][tx]);
		cost[1-now][tx] = exists ? best + energy[(first+step)*width + column] : 0x3fffffff;
		now = 1-now;
		__syncthreads();
	}

	if(exists && INSIDE(tx, margin, margin+useful-1))
		to[column] = cost[now][tx];
}

void seam_on_host(int *cost)
{
	int *old = new int[width];
	memcpy(cost, row_of[0], width*sizeof(int));
	for(int r=1; r<height; r++){
		memcpy(old, cost, width*sizeof(int));
		for(int c=0; c<width; c++){
			int best = old[c];
			if(c > 0) best = LEAST(best, old[c-1]);
			if(c < width-1) best = LEAST(best, old[c+1]);
			cost[c] = best + row_of[r][c];
		}
	}
	delete [] old;
}

int main(int argc, char **argv)
{
	int devices;
	cudaGetDeviceCount(&devices);
	if(devices > 1) cudaSetDevice(0);
	run(argc, argv);
	return EXIT_SUCCESS;
}

void run(int argc, char **argv)
{
	read_arguments(argc, argv);

	int useful = BLOCK - 2*strip;
	int blocks = width/useful + ((width % useful == 0) ? 0 : 1);
	printf("blocks: %d, useful columns of a block: %d\n", blocks, useful);

	int *d_energy, *d_cost[2];
	cudaMalloc((void**)&d_energy, sizeof(int)*width*height);
	cudaMalloc((void**)&d_cost[0], sizeof(int)*width);
	cudaMalloc((void**)&d_cost[1], sizeof(int)*width);
	cudaMemcpy(d_energy, energy, sizeof(int)*width*height, cudaMemcpyHostToDevice);
	cudaMemcpy(d_cost[0], energy, sizeof(int)*width, cudaMemcpyHostToDevice);

#ifdef TIMING
	struct timeval begin, end;
	gettimeofday(&begin, NULL);
#endif
	int source = 0;
	dim3 threads(BLOCK);
	dim3 grid(blocks);
	for(int row=1; row<height; row+=strip){
		advance<<<grid, threads>>>(d_energy, d_cost[source], d_cost[1-source],
		                           width, row, LEAST(strip, height-row), strip);
		source = 1-source;
	}
	cudaDeviceSynchronize();
#ifdef TIMING
	gettimeofday(&end, NULL);
	printf("kernels: %f ms\n", (end.tv_sec-begin.tv_sec)*1e3 + (end.tv_usec-begin.tv_usec)*1e-3);
#endif

	int *cost = new int[width], *expected = new int[width];
	cudaMemcpy(cost, d_cost[source], sizeof(int)*width, cudaMemcpyDeviceToHost);
	seam_on_host(expected);
	int wrong = 0, best = 0;
	for(int c=0; c<width; c++){
		wrong += cost[c] != expected[c];
		if(cost[c] < cost[best]) best = c;
	}
	printf("seam ends in column %d with cost %d\n%s\n", best, cost[best], wrong ? "FAILED" : "PASSED");

	cudaFree(d_energy);
	cudaFree(d_cost[0]);
	cudaFree(d_cost[1]);
	delete [] cost;
	delete [] expected;
	delete [] row_of;
	delete [] energy;
}
