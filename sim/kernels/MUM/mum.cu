// Matches of many short queries in a reference, after MUMmerGPU as in GPGPU-Sim's benchmarks: a thread walks down a
// suffix tree with its query and goes on with the query's next suffix by the suffix link. Tree and reference are 2-D
// textures. A node's address has x in its lower half and y in its upper; 0 is none.
#define NONE 0u
#define ROOT (1u << 16)  // (0, 1)
#define BAND_LOG 5       // nodes are numbered down bands of 32 rows of ...
#define WIDTH_LOG 12     // ... 4096 nodes
#define TEXT_ROWS_LOG 2  // the reference goes down bands of 4 rows of ...
#define TEXT_WIDTH_LOG 16

struct Match {
    int node;
    int edge;  // characters matched on the edge to it; 0 is the node itself
};

__device__ static uint4 fetch(cudaTextureObject_t texture, unsigned int address)
{
    return tex2D<uint4>(texture, address & 0xffff, address >> 16);
}

__device__ static unsigned int child(uint4 children, char c)
{
    switch (c) {
    case 'A':
        return children.x;
    case 'C':
        return children.y;
    case 'G':
        return children.z;
    case 'T':
        return children.w;
    default:
        return NONE;
    }
}

__device__ static char character(cudaTextureObject_t reference, int position)
{
    int row = position & ((1 << TEXT_ROWS_LOG) - 1);
    int column = position >> TEXT_ROWS_LOG & ((1 << TEXT_WIDTH_LOG) - 1);
    int band = position >> (TEXT_ROWS_LOG + TEXT_WIDTH_LOG);
    return tex2D<char>(reference, column, (band << TEXT_ROWS_LOG) + row);
}

__device__ static void record(Match *match, unsigned int address, int edge)
{
    int x = address & 0xffff;
    int y = address >> 16;
    match->node = (y >> BAND_LOG << (BAND_LOG + WIDTH_LOG)) + (x << BAND_LOG) + (y & ((1 << BAND_LOG) - 1));
    match->edge = edge;
}

// A query is a mark, its characters and a zero; there is a match for each suffix of `least` characters or more. Nodes
// hold what their edge says, from first (x) to last (y), and the suffix link (z); `children` those for A, C, G and T.
extern "C" __global__ void mummergpuKernel(Match *matches, const char *queries, cudaTextureObject_t nodes,
                                           cudaTextureObject_t children, cudaTextureObject_t reference,
                                           const int *query_begin, const int *query_length, int count, int least)
{
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= count)
        return;

    int suffixes = query_length[query] - least + 1;
    int begin = query_begin[query];
    const char *text = queries + begin;
    Match *match = matches + begin - query * (least + 1);

    unsigned int node = NONE;
    int place = 0;  // of the next character in the suffix: as many match as there are between the mark and it
    int known = 0;  // characters below the node that are known to match
    for (; suffixes > 0; suffixes--, text++, match++) {
        if (node == NONE || place < 1) {
            node = ROOT;
            place = 1;
            known = 0;
        }

        unsigned int above = node;
        int first = 0;
        int position = 0;  // in the reference
        char c = text[place];
        while (c != 0) {
            above = node;
            node = child(fetch(children, above), c);
            if (node == NONE)
                break;

            uint4 edge = fetch(nodes, node);
            first = edge.x;
            int last = edge.y;
            int step = known == 0 ? 1 : min(known, last - first + 1);
            known = max(known - step, 0);
            place += step;
            position = first + step;
            c = text[place];
            while (position <= last && c != 0) {
                if (character(reference, position) == c) {
                    position++;
                    c = text[++place];
                } else {
                    c = 0;  // ends the walk as the query's end does
                }
            }
        }

        known = node == NONE ? 0 : position - first;
        if (place > least)
            record(match, node == NONE ? above : node, known);
        place -= known + 1;
        node = fetch(nodes, above).z;
    }
}
