// The kernels' own: it needs no more of CUDA than vector_io.cuh has.
#include "variants/common/e4m3_types.cuh"
