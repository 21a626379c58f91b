#define VALUE double
#include "../matrixMul/matrixmul.cu"
