// Host code calls it. Device code uses the types that come with it, and headers for both name its handles.
#pragma once
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

typedef struct cublasContext* cublasHandle_t;
typedef int cublasStatus_t;
