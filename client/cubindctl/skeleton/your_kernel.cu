// y[n] = alpha * x[n] for n < N, computed in float32: a complete kernel to begin with. Replace its computation, then
// go through your_kernel.json from top to bottom. `cubindctl kernels check your_kernel.json` says what is wrong with
// it, and where. A running daemon takes up each change when the files are saved.
//
// JSON has no comments, so its keys are explained here, in their order.
//
// name         the name that callers ask for. Keep it when the kernel changes: earlier measurements still answer.
// source       this file. It may include files of this folder and of those that "headers" lists. The compiler sees
//              no other file of the machine but the CUDA toolkit's own headers.
// problem      the parameters of one call. "dims" are integers with a word about each, "types" the element types that
//              the call may have. "bucket" says for which values of a dim one answer is used: "pow2" lets N = 4096
//              answer for 2049 to 4096; "exact" (the default) lets it answer for itself alone.
// tunables     integers that only the speed depends on, with the values to try. Up to 600 valid combinations are all
//              tried for a problem; of more a model chooses 300.
// constraints  a combination is left out if one of these expressions is 0. Expressions are C over 64-bit
//              integers: dims, tunables, sizeof(T), cdiv(a, b), min, max, device.sm_count, device.shared_optin.
// default      the configuration that is served before any measurement; several are tried in order. It always
//              competes.
// arguments    the parameters of the kernels. Buffers have a "shape", outermost axis first (or an "extent" in
//              elements), a "role" ("in", "out", "inout", "zero" or "scratch") and, if they are read, a "fill" for
//              the measurement. Scalars are an "expr" of the problem, or come from the caller; then the measurement
//              passes "bench".
// launches     the kernels of one call, in order. {T}, {THREADS}, {ITEMS} in an "entry" are replaced: {T} by
//              float, __half or __nv_bfloat16. "grid" and "block" have up to three expressions; "shared_bytes"
//              would ask for dynamic shared memory.
// reference    the right result: a plain kernel in a file of its own. It must not share this kernel's mistakes.
// tolerance    for each type: every element satisfies |out - reference| <= atol + rtol * |reference|.
// work         the bytes and operations of one call: a time that the device cannot reach is refused.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// THREADS  threads of a block
// ITEMS    elements of one thread, THREADS apart, so that neighbouring threads read neighbouring elements
template <typename T, int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS) your_kernel_kernel(const T* x, T* y, long long N, float alpha) {
  const long long first = static_cast<long long>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const long long n = first + i * THREADS;
    if (n < N) {
      y[n] = T(alpha * float(x[n]));
    }
  }
}
