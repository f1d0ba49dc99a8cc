// What device code has of the driver API: tensor maps, which kernels take as parameters, and addresses.
#pragma once
#include <stdint.h>

#define CUDA_VERSION CUDART_VERSION

typedef unsigned long long CUdeviceptr;
typedef struct alignas(64) CUtensorMap_st {
  uint64_t opaque[16];
} CUtensorMap;
