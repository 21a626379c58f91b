/* Connected components of an undirected graph: labels sink to the smallest one until nothing changes. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <math.h>
#include <cuda.h>

#define MAX_THREADS 256

// a vertex: where its neighbours stand in the edge array
struct Vertex
{
	int first;
	int degree;
};

int n_vertices;
int n_edges;
FILE *input;

// #include "components_kernel_v1.cuh"   <- one thread per edge; slower
#include "components_kernels.cuh"

void Components( int argc, char** argv);

////////////////////////////////////////////////////////////////////////////////
// main
////////////////////////////////////////////////////////////////////////////////
int main( int argc, char** argv)
{
	n_vertices = 0;
	n_edges = 0;
	Components( argc, argv);
}

static int next_int()
{
	int value;
	if( fscanf( input, "%d", &value) != 1)
	{
		printf( "the graph file ends early\n");
		exit( 1);
	}
	return value;
}

int root_of( int *parent, int v)
{
	while( parent[v] != v)
		v = parent[v] = parent[parent[v]];
	return v;
}

////////////////////////////////////////////////////////////////////////////////
// reads the graph, labels it on the device, compares with union-find
////////////////////////////////////////////////////////////////////////////////
void Components( int argc, char** argv)
{
	if( argc != 2)
	{
		fprintf( stderr, "Usage: %s <graph>\n  vertices, then first and degree of each, edges, then the edges\n", argv[0]);
		exit( 0);
	}
	input = fopen( argv[1], "r");
	if( !input)
	{
		printf( "cannot read %s\n", argv[1]);
		return;
	}
	n_vertices = next_int();
	Vertex* h_vertices = (Vertex*) malloc( sizeof(Vertex) * n_vertices);
	for( int i = 0; i < n_vertices; i++)
	{
		h_vertices[i].first = next_int();
		h_vertices[i].degree = next_int();
	}
	n_edges = next_int();
	int* h_edges = (int*) malloc( sizeof(int) * n_edges);
	for( int i = 0; i < n_edges; i++)
		h_edges[i] = next_int();
	fclose( input);

	int n_threads = n_vertices < MAX_THREADS ? n_vertices : MAX_THREADS;
	int n_blocks = (int) ceil( n_vertices / (double) n_threads);
	dim3  grid( n_blocks, 1, 1);
	dim3  threads( n_threads, 1, 1);

	Vertex* d_vertices;
	int *d_edges, *d_label;
	bool *d_active, *d_next, *d_more;
	cudaMalloc( (void**) &d_vertices, sizeof(Vertex) * n_vertices);
	cudaMalloc( (void**) &d_edges, sizeof(int) * n_edges);
	cudaMalloc( (void**) &d_label, sizeof(int) * n_vertices);
	cudaMalloc( (void**) &d_active, sizeof(bool) * n_vertices);
	cudaMalloc( (void**) &d_next, sizeof(bool) * n_vertices);
	cudaMalloc( (void**) &d_more, sizeof(bool));
	cudaMemcpy( d_vertices, h_vertices, sizeof(Vertex) * n_vertices, cudaMemcpyHostToDevice);
	cudaMemcpy( d_edges, h_edges, sizeof(int) * n_edges, cudaMemcpyHostToDevice);

	Start<<< grid, threads >>>( d_label, d_active, d_next, n_vertices);

	int rounds = 0;
	bool more;
	do
	{
		more = false;
		cudaMemcpy( d_more, &more, sizeof(bool), cudaMemcpyHostToDevice);
		Sink<<< grid, threads, 0 >>>( d_vertices, d_edges, d_label, d_active, d_next, n_vertices);
		Turn<<< grid, threads, 0 >>>( d_active, d_next, d_more, n_vertices);
		cudaMemcpy( &more, d_more, sizeof(bool), cudaMemcpyDeviceToHost);
		rounds++;
	}
	while( more);

	int* h_label = (int*) malloc( sizeof(int) * n_vertices);
	cudaMemcpy( h_label, d_label, sizeof(int) * n_vertices, cudaMemcpyDeviceToHost);
	printf( "%d rounds\n", rounds);

	int* parent = (int*) malloc( sizeof(int) * n_vertices);
	for( int i = 0; i < n_vertices; i++)
		parent[i] = i;
	for( int i = 0; i < n_vertices; i++)
		for( int e = 0; e < h_vertices[i].degree; e++)
		{
			int a = root_of( parent, i), b = root_of( parent, h_edges[h_vertices[i].first + e]);
			if( a < b) parent[b] = a;
			else parent[a] = b;
		}
	int wrong = 0;
	for( int i = 0; i < n_vertices; i++)
		wrong += root_of( parent, i) != h_label[i];
	printf( wrong ? "FAILED: %d labels\n" : "PASSED\n", wrong);

	FILE *out = fopen( "labels.txt", "w");
	for( int i = 0; i < n_vertices; i++)
		fprintf( out, "%d %d\n", i, h_label[i]);
	fclose( out);

	free( h_vertices); free( h_edges); free( h_label); free( parent);
	cudaFree( d_vertices); cudaFree( d_edges); cudaFree( d_label);
	cudaFree( d_active); cudaFree( d_next); cudaFree( d_more);
}
