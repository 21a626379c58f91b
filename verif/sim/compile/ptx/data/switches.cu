// A switch, loops and early returns.
// nvcc -ptx -arch=compute_75 switches.cu -o switches_75.ptx; the same with compute_100

extern "C" __global__ void switches(int *output, const int *choice, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    switch (choice[i]) {
    case 0: atomicAdd(output, 1); break;
    case 1: output[1] = i * n; break;
    case 2: output[i * 2] = n; break;
    case 3: output[i] = output[n]; // falls through
    case 4: output[4] -= 9; break;
    case 5: atomicMax(output + 5, i); break;
    case 6: __syncthreads(); break;
    case 7: output[7] = clock(); break;
    case 8: output[8] = i / n; break;
    case 9: return;
    case 10: atomicExch(output + 10, i); break;
    default: output[i] = -1;
    }
    do {
        if (output[i] == 3)
            break;
        if (output[i] & 1)
            continue;
        output[i] += 1;
    } while (output[i]++ < 100);
}
