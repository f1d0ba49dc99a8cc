// y[i] = x[i] * 2, the kernel of the malformed specs beside it.
template <typename T, int THREADS, int VECTOR>
__global__ void twice(const T* x, T* y, long long n) {
  const long long first = (blockIdx.x * (long long)THREADS + threadIdx.x) * VECTOR;
  for (int i = 0; i < VECTOR; ++i) {
    if (first + i < n) {
      y[first + i] = x[first + i] + x[first + i];
    }
  }
}

template <typename T>
__global__ void twice_reference(const T* x, T* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) {
    y[i] = x[i] + x[i];
  }
}
