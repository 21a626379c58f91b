// Breadth-first search, one level per pair of launches, after Rodinia's bfs. Races are benign: all writers of a cost
// write the same value.
struct Node {
    int first_edge;
    int edges;
};

// Every node of the frontier gives its unvisited neighbours their cost.
extern "C" __global__ void expand(const Node *nodes, const int *edges, bool *frontier, bool *updated,
                                  const bool *visited, int *cost, int count)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;

    if (node < count && frontier[node]) {
        frontier[node] = false;
        for (int i = nodes[node].first_edge; i < nodes[node].first_edge + nodes[node].edges; i++) {
            int neighbour = edges[i];
            if (!visited[neighbour]) {
                cost[neighbour] = cost[node] + 1;
                updated[neighbour] = true;
            }
        }
    }
}

// The nodes reached become the next frontier; `more` tells the host that there are any.
extern "C" __global__ void advance(bool *frontier, bool *updated, bool *visited, bool *more, int count)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;

    if (node < count && updated[node]) {
        frontier[node] = true;
        visited[node] = true;
        *more = true;
        updated[node] = false;
    }
}
