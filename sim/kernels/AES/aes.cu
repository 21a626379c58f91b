// AES-256 encryption of many blocks with one key, block by block (ECB), after the AES of GPGPU-Sim's benchmarks: four
// threads share a block, each with a column of its state. A CTA keeps its states and the tables in the scratchpad. The
// table of a row gives for each byte there what it adds to a column of the next state: substitution and mixing in one.
#define THREADS 256
#define COLUMNS 4  // of a state: words whose lowest byte is in the first row
#define ROUNDS 14

__constant__ unsigned int tables[4][256];  // by the row of the byte
__constant__ unsigned int round_keys[ROUNDS + 1][COLUMNS];

__device__ static unsigned int byte(unsigned int word, int row)
{
    return word >> 8 * row & 0xff;
}

extern "C" __global__ void encrypt_aes256(const unsigned int *input, unsigned int *output, int words)
{
    __shared__ unsigned int table[4][256];
    __shared__ unsigned int states[2][THREADS];
    int word = blockIdx.x * THREADS + threadIdx.x;
    int column = threadIdx.x % COLUMNS;
    int block = threadIdx.x - column;

    for (int row = 0; row < 4; row++)
        table[row][threadIdx.x] = tables[row][threadIdx.x];
    states[0][threadIdx.x] = word < words ? input[word] ^ round_keys[0][column] : 0;
    __syncthreads();

    for (int round = 1; round < ROUNDS; round++) {
        const unsigned int *state = &states[(round - 1) % 2][block];
        unsigned int next = round_keys[round][column];
        for (int row = 0; row < 4; row++)
            next ^= table[row][byte(state[(column + row) % COLUMNS], row)];
        states[round % 2][threadIdx.x] = next;
        __syncthreads();
    }

    // The last round does not mix: of a table's word, the second byte is the substitute itself.
    const unsigned int *state = &states[(ROUNDS - 1) % 2][block];
    unsigned int last = round_keys[ROUNDS][column];
    for (int row = 0; row < 4; row++)
        last ^= byte(table[0][byte(state[(column + row) % COLUMNS], row)], 1) << 8 * row;
    if (word < words)
        output[word] = last;
}
