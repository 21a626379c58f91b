// Inline PTX with nested scopes, labels, predicates, constant expressions and vector registers.
// nvcc -ptx -arch=compute_75 scopes.cu -o scopes_75.ptx; the same with compute_100

extern "C" __global__ void scopes(int *output, float *values, double *wide)
{
    int thread = threadIdx.x, result;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        asm volatile("{\n\t"
                     ".reg .u32 t1, t2;\n\t"
                     ".reg .pred p;\n\t"
                     "mul.lo.u32 t1, %1, %1; // a comment; with { braces\n\t"
                     "setp.gt.u32 p, t1, 5;\n\t"
                     "@p add.u32 t1, t1, 1;\n\t"
                     "@!p bra Skip;\n\t"
                     "mul.lo.u32 %0, t1, %1;\n\t"
                     "Skip:\n\t"
                     "{ .reg .u32 t1; mov.u32 t1, 3; add.u32 %0, %0, t1; }\n\t"
                     "/* done */ }"
                     : "=r"(result)
                     : "r"(output[thread]));
        output[thread] = result;
    }
    asm("{ .reg .pred p, q; setp.lt.and.s32 p|q, %1, 0b1011, 1; selp.s32 %0, 017, (1+2*3)<<2, p; }"
        : "+r"(result)
        : "r"(thread));
    asm("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; mov.b64 %1, {hi, lo}; mov.b32 %0, lo; mov.b64 {_, hi}, %1; }"
        : "+r"(result), "+d"(wide[thread]));
    asm("{ .reg .u64 a; .reg .v4 .f32 v; mov.u64 a, %1; ld.global.v4.f32 v, [a+-16]; add.f32 %0, v.x, v.w; }"
        : "=f"(values[2])
        : "l"(values));
    asm("{ .reg .pred P; vote.sync.any.pred P, !P, 0xffffffff; selp.s32 %0, WARP_SZ, 0, P; }" : "=r"(output[1]));
    asm("vadd.u32.u32.u32.sat %0, %1.b0, %1.h1;" : "=r"(output[2]) : "r"(result));
}
