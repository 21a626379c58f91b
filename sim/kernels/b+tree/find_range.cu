// Range queries on a B+ tree, after Rodinia's b+tree: a CTA per query, a thread per key of a node. Both ends of the range
// go down the tree together; all that the CTA knows of its query stays in global memory, and is read anew at each use.
#define ORDER 508

struct Node {
    int location;
    int indices[ORDER + 1];  // of the children; in leaves of the records
    int keys[ORDER + 1];     // ascending
    bool is_leaf;
    int num_keys;
};

// `first` and `last` are the nodes in which the ends of the range lie, and `next_first` and `next_last` those a level
// below. `record` belongs to the key that equals the start; the range is `length` records long if a key equals its end.
extern "C" __global__ void findRangeK(long long height, const Node *nodes, long long count, long long *first,
                                      long long *next_first, long long *last, long long *next_last, const int *start,
                                      const int *end, int *record, int *length)
{
    unsigned thread = threadIdx.x;  // unsigned, and the level counted down: fewer registers
    unsigned query = blockIdx.x;

#pragma unroll 1
    for (int level = height; level != 0; level--) {
        if (nodes[first[query]].keys[thread] <= start[query] && nodes[first[query]].keys[thread + 1] > start[query]) {
            if (nodes[first[query]].indices[thread] < count)
                next_first[query] = nodes[first[query]].indices[thread];
        }
        if (nodes[last[query]].keys[thread] <= end[query] && nodes[last[query]].keys[thread + 1] > end[query]) {
            if (nodes[last[query]].indices[thread] < count)
                next_last[query] = nodes[last[query]].indices[thread];
        }
        __syncthreads();
        if (thread == 0) {
            first[query] = next_first[query];
            last[query] = next_last[query];
        }
        __syncthreads();
    }

    if (nodes[first[query]].keys[thread] == start[query])
        record[query] = nodes[first[query]].indices[thread];
    __syncthreads();
    if (nodes[last[query]].keys[thread] == end[query])
        length[query] = nodes[last[query]].indices[thread] - record[query] + 1;
}
