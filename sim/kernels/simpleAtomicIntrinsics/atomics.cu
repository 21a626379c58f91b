// All threads change the same eleven words, each by another atomic operation, after the SDK's simpleAtomicIntrinsics.
extern "C" __global__ void testKernel(int *words)
{
    const unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;

    atomicAdd(&words[0], 10);
    atomicSub(&words[1], 10);
    atomicExch(&words[2], tid);
    atomicMax(&words[3], tid);
    atomicMin(&words[4], tid);
    atomicInc((unsigned int *)&words[5], 17);
    atomicDec((unsigned int *)&words[6], 137);
    atomicCAS(&words[7], tid - 1, tid);
    atomicAnd(&words[8], 2 * tid + 7);
    atomicOr(&words[9], 1 << (tid & 31));
    atomicXor(&words[10], tid);
}
