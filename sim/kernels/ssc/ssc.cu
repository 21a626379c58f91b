// Likeness of documents, after Similarity Score of the MapReduce framework Mars: the cosine of the angle between their
// vectors of terms. One map computes the vectors' norms, a thread to a document, and another the cosines, a thread to a
// pair. Vectors are rows, so lanes read with the stride of a row.
extern "C" __global__ void map_norms(const float *vectors, int documents, int terms, float *norms)
{
    int document = blockIdx.x * blockDim.x + threadIdx.x;
    if (document >= documents)
        return;

    const float *vector = vectors + document * terms;
    float sum = 0.0f;
    for (int i = 0; i < terms; i++)
        sum += vector[i] * vector[i];
    norms[document] = sqrtf(sum);
}

extern "C" __global__ void map_scores(const float *vectors, const float *norms, const int2 *pairs, int count, int terms,
                                      float *scores)
{
    int record = blockIdx.x * blockDim.x + threadIdx.x;
    if (record >= count)
        return;

    int2 pair = pairs[record];
    const float *first = vectors + pair.x * terms;
    const float *second = vectors + pair.y * terms;
    float product = 0.0f;
    for (int i = 0; i < terms; i++)
        product += first[i] * second[i];
    scores[record] = product / (norms[pair.x] * norms[pair.y]);
}
