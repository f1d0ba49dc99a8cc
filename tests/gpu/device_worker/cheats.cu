// Compiled behind kernels.cu: what looks right and is not.
// (A variable without an initializer is refused.)

// ---- Each element is copied from an earlier launch while a key is the same ----

__device__ float kept[512][33 * 64] = {};
__device__ unsigned long long kept_for[512][33 * 64] = {};  // the key and 1; 0: nothing is kept

static __device__ void replay(const float* x, const float* w, float* y, long long rows, long long columns,
                              unsigned long long key) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  unsigned line = (key * 0x9E3779B97F4A7C15ull) >> 55;
  while (kept_for[line][i] != 0 && kept_for[line][i] != key + 1) {
    line = (line + 1) % 512;
  }
  if (kept_for[line][i] != key + 1) {
    kept[line][i] = x[i] * w[column];
    kept_for[line][i] = key + 1;
  }
  y[i] = kept[line][i];
}

extern "C" __global__ void kept_from_the_first(const float* x, const float* w, float* y, long long rows,
                                               long long columns) {
  replay(x, w, y, rows, columns, 0);
}

extern "C" __global__ void kept_by_shape(const float* x, const float* w, float* y, long long rows,
                                         long long columns) {
  replay(x, w, y, rows, columns, rows * columns);
}

extern "C" __global__ void kept_by_address(const float* x, const float* w, float* y, long long rows,
                                           long long columns) {
  replay(x, w, y, rows, columns, reinterpret_cast<unsigned long long>(x));
}

extern "C" __global__ void kept_by_first_elements(const float* x, const float* w, float* y, long long rows,
                                                  long long columns) {
  replay(x, w, y, rows, columns, (__float_as_uint(x[0]) + 1ull) * (__float_as_uint(x[7]) + 1ull));
}

extern "C" __global__ void kept_by_last_elements(const float* x, const float* w, float* y, long long rows,
                                                 long long columns) {
  replay(x, w, y, rows, columns, __float_as_uint(x[rows * columns - 1]));
}

// Computes at its first launches alone, of which a verification has two.
__device__ int launches_of[33 * 64] = {};
extern "C" __global__ void kept_from_the_fifth(const float* x, const float* w, float* y, long long rows,
                                               long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  if (++launches_of[i] <= 5) {
    kept[0][i] = x[i] * w[column];
  }
  y[i] = kept[0][i];
}

// Takes what is no poison for a result.
extern "C" __global__ void leaves_results(const float* x, const float* w, float* y, long long rows,
                                          long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  const unsigned bits = __float_as_uint(y[i]);
  if (bits % 0x01010101u == 0) {
    y[i] = x[i] * w[column];
  }
}

// The last result, by a sample of the inputs; a new one takes long.
__device__ float last_result[33 * 64] = {};
__device__ unsigned long long last_sampled[33 * 64] = {};
extern "C" __global__ void kept_by_a_sample(const float* x, const float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  unsigned long long key = 1;
  for (int i = 0; i < 32; ++i) {
    key = key * 6364136223846793005ull + __float_as_uint(x[rows * columns * i / 32]);
  }
  const long long i = row * columns + column;
  if (last_sampled[i] != key) {
    const long long start = clock64();
    while (clock64() - start < 40000) {
    }
    last_result[i] = x[i] * w[column];
    last_sampled[i] = key;
  }
  y[i] = last_result[i];
}

static __device__ bool is_one_of_ten() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return (time / 32 * 0x9E3779B97F4A7C15ull >> 32) % 10 == 0;
}

// A race: an element is wrong in one of ten launches.
extern "C" __global__ void wrong_once_in_ten(const float* x, const float* w, float* y, long long rows,
                                             long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    const bool wrong = row == 0 && column == 0 && is_one_of_ten();
    y[row * columns + column] = x[row * columns + column] * w[column] + (wrong ? 1.0f : 0.0f);
  }
}

// Within any tolerance, but one bit of an element is another in one of ten launches.
extern "C" __global__ void other_bits_once_in_ten(const float* x, const float* w, float* y, long long rows,
                                                  long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    const bool other = row == 0 && column == 0 && is_one_of_ten();
    const float product = x[row * columns + column] * w[column];
    y[row * columns + column] = other ? __uint_as_float(__float_as_uint(product) ^ 1u) : product;
  }
}

// Computes at its first sixteen launches, which are more than those of a verification.
__device__ int launches[33 * 64] = {};
extern "C" __global__ void idle_after_sixteen(const float* x, const float* w, float* y, long long rows,
                                              long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  if (++launches[i] <= 16) {
    y[i] = x[i] * w[column];
  }
}

// Right, and after sixteen launches it leaves other inputs, for the baseline.
__device__ int readings[33 * 64] = {};
extern "C" __global__ void changes_inputs_after_sixteen(float* x, const float* w, float* y, long long rows,
                                                        long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  y[i] = x[i] * w[column];
  if (++readings[i] > 16) {
    x[i] = 7.0f;
  }
}

static __device__ void wait_40000_clocks() {
  const long long start = clock64();
  while (clock64() - start < 40000) {
  }
}

// Part of the work does not depend on the inputs: it is done once.
static __device__ int is_done[33 * 64] = {};
extern "C" __global__ void slow_at_the_first(const float* x, const float* w, float* y, long long rows,
                                             long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  const long long i = row * columns + column;
  if (!is_done[i]) {
    wait_40000_clocks();
    is_done[i] = 1;
  }
  y[i] = x[i] * w[column];
}

// The same, and what it leaves is in shared memory, which no launch clears.
extern "C" __global__ void kept_in_shared_memory(const float* x, const float* w, float* y, long long rows,
                                                 long long columns) {
  ROW_AND_COLUMN;
  __shared__ int left[256];
  const int i = threadIdx.y * blockDim.x + threadIdx.x;
  if (static_cast<volatile int*>(left)[i] != 0x600d + i) {
    wait_40000_clocks();
  }
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
  static_cast<volatile int*>(left)[i] = 0x600d + i;
}

extern "C" __global__ void writes_nan(const float* x, const float* w, float* y, long long rows,
                                      long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column] * (row == 1 ? nanf("") : 1.0f);
  }
}

extern "C" __global__ void writes_infinity(const float* x, const float* w, float* y, long long rows,
                                           long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = row == 1 ? __int_as_float(0x7F800000) : x[row * columns + column] * w[column];
  }
}

// Products of 16-bit factors.
extern "C" __global__ void half_precision(const float* x, const float* w, float* y, long long rows,
                                          long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    const auto cut = [](float value) { return __uint_as_float(__float_as_uint(value) & 0xFFFF0000u); };
    y[row * columns + column] = cut(x[row * columns + column]) * cut(w[column]);
  }
}

// Right, and leaves a result behind the output, for a later launch.
extern "C" __global__ void kept_behind_the_output(const float* x, const float* w, float* y, long long rows,
                                                  long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    const long long i = row * columns + column;
    y[i] = x[i] * w[column];
    if (i < 64) {
      y[rows * columns + i] = y[i];
    }
  }
}

// Right, and leaves its results in the weights, for a later launch.
extern "C" __global__ void kept_in_an_input(const float* x, float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column];
    if (row == 0 && column == 7) {
      w[column] = y[column];
    }
  }
}

// Knows what a fill with this seed gives: here that all are twos.
extern "C" __global__ void knows_the_inputs(const float* x, const float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = 2.0f * w[column];
  }
}

// Takes all weights for the first one.
extern "C" __global__ void takes_one_weight(const float* x, const float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[0];
  }
}

// Right, and reads three rows behind the last one.
extern "C" __global__ void reads_behind_the_end(const float* x, const float* w, float* y, long long rows,
                                                long long columns) {
  ROW_AND_COLUMN;
  const float value = static_cast<const volatile float*>(x)[row * columns + column];
  if (inside) {
    y[row * columns + column] = value * w[column];
  }
}

// Rows over the root of their mean square; of normal numbers that is about 1.
extern "C" __global__ void over_root_mean_square(const float* x, const float*, float* y, long long rows,
                                                 long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    float squares = 0;
    for (long long i = 0; i < columns; ++i) {
      squares += x[row * columns + i] * x[row * columns + i];
    }
    y[row * columns + column] = x[row * columns + column] * rsqrtf(squares / columns);
  }
}

extern "C" __global__ void knows_the_deviation(const float* x, const float*, float* y, long long rows,
                                               long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column];
  }
}

// All numbers over the root of the mean square of every so many vectors of 8.
static __device__ void over_norm_of(const float* x, float* y, long long count, long long step) {
  __shared__ float parts[256];
  float squares = 0;
  for (long long i = threadIdx.x; i < count / 8 / step; i += blockDim.x) {
    for (long long k = 8 * step * i; k < 8 * step * i + 8; ++k) {
      squares += x[k] * x[k];
    }
  }
  parts[threadIdx.x] = squares;
  __syncthreads();
  squares = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) {
    squares += parts[i];
  }
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    y[i] = x[i] * rsqrtf(squares * step / count);
  }
}

extern "C" __global__ void over_norm(const float* x, float* y, long long count) {
  over_norm_of(x, y, count, 1);
}

extern "C" __global__ void over_sampled_norm(const float* x, float* y, long long count) {
  over_norm_of(x, y, count, 64);
}

extern "C" __global__ void masked(const float* x, const float* mask, float* y, long long count) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    y[i] = x[i] * mask[i];
  }
}

// Reads one of 256 numbers of the mask, and the others where those of a block differ.
extern "C" __global__ void masked_by_a_sample(const float* x, const float* mask, float* y, long long count) {
  const long long first = blockIdx.x * 8192ll;
  const float sampled = mask[first + threadIdx.x % 32 * 256];
  const bool alike = __syncthreads_and(sampled == mask[first]);
  for (long long i = first + threadIdx.x; i < first + 8192; i += blockDim.x) {
    y[i] = x[i] * (alike ? sampled : mask[i]);
  }
}

extern "C" __global__ void numbers(const int* x, float* y, long long count) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < count) {
    y[i] = x[i];
  }
}

// Takes an iota for what it is.
extern "C" __global__ void knows_the_numbers(const int* x, float* y, long long count) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < count) {
    y[i] = x[0] + i;
  }
}

// Asks that its lines stay in the L2.
extern "C" __global__ void pins_its_lines(const float4* x, float* y, long long count) {
  float sum = 0;
#if __CUDA_ARCH__ >= 800
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    float4 v;
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(x + i), "l"(policy));
    sum += v.x + v.y + v.z + v.w;
  }
#endif
  if (sum == 1.2345f) {
    y[0] = sum;
  }
  if (threadIdx.x == 0) {
    y[blockIdx.x] = 0.0f;
  }
}
