// memcpy and memset are predefined.
#pragma once

inline __host__ __device__ void* memmove(void* to, const void* from, size_t count) {
  char* out = static_cast<char*>(to);
  const char* in = static_cast<const char*>(from);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = in < out ? count - 1 - i : i;
    out[at] = in[at];
  }
  return to;
}
inline __host__ __device__ int memcmp(const void* a, const void* b, size_t count) {
  const unsigned char* one = static_cast<const unsigned char*>(a);
  const unsigned char* two = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < count; ++i) {
    if (one[i] != two[i]) {
      return one[i] - two[i];
    }
  }
  return 0;
}
inline __host__ __device__ size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}
inline __host__ __device__ int strcmp(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}
