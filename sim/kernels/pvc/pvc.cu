// Page views by URL from the log of a web server, after Page View Count of the MapReduce framework Mars. A thread has a
// record "URL, tab, address, tab, cookie, newline" and reads its URL byte by byte. Keys differ in length, so the map
// runs twice: first for the lengths, then, with the sums of all lengths before, for the pairs themselves.
#define END '\t'  // of a URL

extern "C" __global__ void map_count(const char *log, const int *begins, int records, int *key_bytes)
{
    int record = blockIdx.x * blockDim.x + threadIdx.x;
    if (record >= records)
        return;

    const char *url = log + begins[record];
    int length = 0;
    while (url[length] != END)
        length++;
    key_bytes[record] = length;
}

// The keys are sorted by their hashes.
extern "C" __global__ void map_emit(const char *log, const int *begins, int records, const int *key_begins, char *keys,
                                    unsigned int *hashes, int *values)
{
    int record = blockIdx.x * blockDim.x + threadIdx.x;
    if (record >= records)
        return;

    const char *url = log + begins[record];
    char *key = keys + key_begins[record];
    unsigned int hash = 5381;
    for (char c = *url; c != END; c = *++url) {
        *key++ = c;
        hash = ((hash << 5) + hash) ^ (unsigned char)c;
    }
    hashes[record] = hash;
    values[record] = 1;
}

// A thread has a key: the pairs order[first[key]] up to those of the next key.
extern "C" __global__ void reduce(const int *values, const int *order, const int *first, int keys, int *counts)
{
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    if (key >= keys)
        return;

    int count = 0;
    for (int i = first[key]; i < first[key + 1]; i++)
        count += values[order[i]];
    counts[key] = count;
}
