#ifndef _COMPONENTS_KERNELS_H_
#define _COMPONENTS_KERNELS_H_

// The includer defines Vertex and MAX_THREADS.

#define THREAD_ID (blockIdx.x * MAX_THREADS + threadIdx.x)

__global__ void
Start( int* label, bool* active, bool* next, int n)
{
	int v = THREAD_ID;
	if( v < n)
	{
		label[v] = v;
		active[v] = true;
		next[v] = false;
	}
}

__global__ void
Sink( const Vertex* vertices, const int* edges, int* label, bool* active, bool* next, int n)
{
	int v = THREAD_ID;
	if( v < n && active[v])
	{
		active[v] = false;
		Vertex mine = vertices[v];
		for( int e = mine.first; e < mine.first + mine.degree; e++)
		{
			int other = edges[e];
			if( atomicMin( &label[other], label[v]) > label[v])
				next[other] = true;
		}
	}
}

__global__ void
Turn( bool* active, bool* next, bool* more, int n)
{
	int v = THREAD_ID;
	if( v < n && next[v])
	{
		next[v] = false;
		active[v] = true;
		*more = true;
	}
}

#endif
