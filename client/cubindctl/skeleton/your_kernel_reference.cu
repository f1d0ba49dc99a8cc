// The reference of your_kernel, as plain as possible: one element a thread.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__global__ void your_kernel_reference(const T* x, T* y, long long N, float alpha) {
  const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n < N) {
    y[n] = T(alpha * float(x[n]));
  }
}
