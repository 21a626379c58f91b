// Breadth-first search by one CTA, after Chen's figure 2-1: two barriers separate the levels, in one launch; or each
// level is a launch, which loads what stays in the scratchpad again.
#define THREADS 512
#define MOST_VERTICES 3072

struct Graph
{
    const int *first;  // edge of each vertex, and the number of edges
    const int *target; // of each edge
    int *cost;         // edges from the source, or -1
    int *frontier;     // whether a vertex was found in the last level
    int *found;        // whether one is found in this level
    int vertices;
};

__device__ static void load(const Graph &graph, int *first)
{
    for (int vertex = threadIdx.x; vertex <= graph.vertices; vertex += THREADS)
        first[vertex] = graph.first[vertex];
    __syncthreads();
}

// Whether a level, `cost` edges from the source, has any vertex. What it finds is marked first, and visited later.
__device__ static bool level(const Graph &graph, const int *first, int cost)
{
    for (int vertex = threadIdx.x; vertex < graph.vertices; vertex += THREADS)
        if (graph.frontier[vertex]) {
            graph.frontier[vertex] = 0;
            for (int edge = first[vertex]; edge < first[vertex + 1]; edge++) {
                int next = graph.target[edge];
                if (graph.cost[next] < 0)
                    graph.found[next] = 1;
            }
        }
    __syncthreads();
    int any = 0;
    for (int vertex = threadIdx.x; vertex < graph.vertices; vertex += THREADS)
        if (graph.found[vertex]) {
            graph.found[vertex] = 0;
            graph.cost[vertex] = cost;
            graph.frontier[vertex] = any = 1;
        }
    return __syncthreads_or(any);
}

extern "C" __global__ void bfs_barriers(Graph graph)
{
    __shared__ int first[MOST_VERTICES + 1];
    load(graph, first);
    for (int cost = 1; level(graph, first, cost); cost++)
        ;
}

extern "C" __global__ void bfs_level(Graph graph, int cost, int *any)
{
    __shared__ int first[MOST_VERTICES + 1];
    load(graph, first);
    bool found = level(graph, first, cost);
    if (threadIdx.x == 0)
        *any = found;
}
