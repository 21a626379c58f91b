// The links of web pages, after Inverted Index of the MapReduce framework Mars. A thread scans a line of HTML byte by
// byte for <a href=LINK>. Lines have any number of links of any length, so the map runs twice: first it counts, then,
// with the sums of all counts before, it emits pairs of a link and the document that has it.
#define START 0x3c6120687265663dull  // "<a href=": the last eight characters, the latest in the lowest byte
#define END '>'

extern "C" __global__ void map_count(const unsigned char *text, const int *begins, int lines, int *links,
                                     int *key_bytes)
{
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines)
        return;

    unsigned long long last = 0;
    bool inside = false;
    int count = 0;
    int bytes = 0;
    int end = begins[line + 1];
    for (int at = begins[line]; at < end; at++) {
        unsigned char c = text[at];
        inside = inside && c != END;
        bytes += inside;
        last = last << 8 | c;
        if (last == START) {
            inside = true;
            count++;
        }
    }
    links[line] = count;
    key_bytes[line] = bytes;
}

// Of each pair: where its link ends in `keys`, and its document.
extern "C" __global__ void map_emit(const unsigned char *text, const int *begins, const int *documents, int lines,
                                    const int *pair_begins, const int *key_begins, unsigned char *keys, int *key_ends,
                                    int *values)
{
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines)
        return;

    unsigned long long last = 0;
    bool inside = false;
    int document = documents[line];
    int pair = pair_begins[line];
    int key = key_begins[line];
    int end = begins[line + 1];
    for (int at = begins[line]; at < end; at++) {
        unsigned char c = text[at];
        if (inside && c != END) {
            keys[key++] = c;
        } else if (inside) {
            key_ends[pair] = key;
            values[pair++] = document;
            inside = false;
        }
        last = last << 8 | c;
        inside = inside || last == START;
    }
}
