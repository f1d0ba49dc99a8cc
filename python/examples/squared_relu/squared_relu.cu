// y = max(x, 0)^2, and dx = 2 * max(x, 0) * dy. THREADS threads of a block, ITEMS elements of a thread.
#include <cuda_bf16.h>

template <int THREADS, int ITEMS, typename Body>
__device__ void for_each(long long N, Body body) {
  const long long first = static_cast<long long>(blockIdx.x) * THREADS * ITEMS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS < N) {
      body(first + i * THREADS);
    }
  }
}

template <typename T, int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS) squared_relu(const T* x, T* y, long long N) {
  for_each<THREADS, ITEMS>(N, [=](long long n) {
    const float positive = fmaxf(float(x[n]), 0.0f);
    y[n] = T(positive * positive);
  });
}

template <typename T, int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS)
    squared_relu_backward(const T* x, const T* dy, T* dx, long long N) {
  for_each<THREADS, ITEMS>(N,
                           [=](long long n) { dx[n] = T(2.0f * fmaxf(float(x[n]), 0.0f) * float(dy[n])); });
}
