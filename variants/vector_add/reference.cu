// One element a thread, for a grid of any size.
#include "vector_io.cuh"

template <typename T>
__global__ void vector_add_reference(const T* a, const T* b, T* c, long long N) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; n < N; n += stride) {
    c[n] = from_float<T>(to_float(a[n]) + to_float(b[n]));
  }
}
