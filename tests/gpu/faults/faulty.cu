// y = 2 * x. The configurations with FAULT=0 are right, and of two the one with more threads per block is faster, by far
// more than noise. Each other value of FAULT is a defect, and without it the fastest of all. tests/support/fault_table
// has what becomes of them.

// The reference is compiled without defines.
#ifndef FAULT
#define FAULT 0
#define THREADS 256
#endif

// faulty.json has the numbers of those that a launch makes.
#define COMPILE_ERROR 1
#define COMPILER_CRASH 2
#define COMPILER_HANG 3
#define LARGE_CUBIN 4
#define SHARED_MEMORY 5
#define REGISTERS 6
#define ILLEGAL_ADDRESS 7
#define MISALIGNED_ADDRESS 8
#define ASSERTION 9
#define TRAP 10
#define ENDLESS_LOOP 11
#define WRONG_RESULT 12
#define NOT_A_NUMBER 13
#define ONE_TOO_FAR 14
#define OTHER_BITS 15
// 16: out of memory. 17 and above are right: what fails is the machinery.

#if FAULT == COMPILE_ERROR
#error this configuration does not compile
#elif FAULT == COMPILER_CRASH || FAULT == COMPILER_HANG
// Minutes of work, in little memory. The crash is what a test does to the compiler meanwhile.
template <int D, int X>
struct Tree {
  static const int kSum = Tree<D - 1, 2 * X>::kSum + Tree<D - 1, 2 * X + 1>::kSum;
};
template <int X>
struct Tree<0, X> {
  static const int kSum = X & 1;
};
__device__ int tree() { return Tree<26, 1>::kSum; }
#elif FAULT == LARGE_CUBIN
__device__ int large[17'000'000] = {1};  // 68 MB; the limit is 64 MiB
#elif FAULT == ASSERTION
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
#endif

constexpr int kClocks = 20'000;  // of a block with 256 threads: about 10 us

__device__ void take_a_while() {
  const long long start = clock64();
  while (clock64() - start < 256 / THREADS * kClocks) {
  }
}

// So many values live at once that a block of 1024 threads lacks registers.
__device__ float of_many_registers(const float* x, long long i) {
  float values[128];
#pragma unroll
  for (int k = 0; k < 128; ++k) {
    values[k] = *reinterpret_cast<const volatile float*>(x + i);
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 127; k >= 0; --k) {
    asm volatile("add.f32 %0, %0, %1;" : "+f"(sum) : "f"(values[k]));
  }
  return sum / 128;
}

__device__ float misaligned(const float* x) {
  float a, b, c, d;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + 1));
  return a + b + c + d;
}

__global__ void faulty(const float* x, float* y, float* scratch, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) {
    return;
  }
  float value = x[i];
#if FAULT == 0
  take_a_while();
#elif FAULT == LARGE_CUBIN
  value += static_cast<float>(large[i]);
#elif FAULT == COMPILER_CRASH || FAULT == COMPILER_HANG
  value += static_cast<float>(tree());
#elif FAULT == SHARED_MEMORY
  __shared__ volatile float fixed[1024];
  extern __shared__ volatile float shared[];
  fixed[threadIdx.x] = shared[threadIdx.x] = value;
  value = fixed[threadIdx.x] + shared[threadIdx.x] - value;
#elif FAULT == REGISTERS
  value = of_many_registers(x, i);
#elif FAULT == ILLEGAL_ADDRESS
  *reinterpret_cast<volatile float*>(0x10) = value;
#elif FAULT == MISALIGNED_ADDRESS
  value += misaligned(x);
#elif FAULT == ASSERTION
  __assertfail("value == 0", "faulty.cu", __LINE__, "faulty", 1);
#elif FAULT == TRAP
  asm volatile("trap;");
#elif FAULT == ENDLESS_LOOP
  while (*reinterpret_cast<volatile float*>(y) != 12345.0f) {
  }
#elif FAULT == WRONG_RESULT
  value += i == n - 1 ? 1.0f : 0.0f;
#elif FAULT == NOT_A_NUMBER
  value = i == n - 1 ? __int_as_float(0x7fffffff) : value;
#elif FAULT == ONE_TOO_FAR
  if (i == 0) {
    y[n] = 0.0f;
  }
#elif FAULT == OTHER_BITS
  value *= clock64() & 16 ? 1.0f : 1.0000002f;  // within the tolerance
#endif
  if (scratch == nullptr) {
    value = 0.0f;
  }
  y[i] = 2.0f * value;
}

__global__ void reference(const float* x, float* y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 2.0f * x[i];
  }
}
