// Clears the L2 by writing a buffer. Timer knows its name.

extern "C" __global__ void flush_by_writing(uint4* buffer, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    buffer[i] = uint4{0, 0, 0, 0};
  }
}
