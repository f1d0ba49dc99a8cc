// What the tests of the device worker launch. Rows of `columns` floats, `blockDim.y` rows a block: y = x * w.

typedef unsigned char u8;

#define ROW_AND_COLUMN                                         \
  const long long row = blockIdx.x * blockDim.y + threadIdx.y; \
  const long long column = threadIdx.x;                        \
  const bool inside = row < rows && column < columns

extern "C" __global__ void reference(const float* x, const float* w, float* y, long long rows,
                                     long long columns) {
  const long long row = blockIdx.x;
  for (long long column = threadIdx.x; column < columns; column += blockDim.x) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
}

extern "C" __global__ void right(const float* x, const float* w, float* y, long long rows,
                                 long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
}

// Takes no other input than twos.
extern "C" __global__ void right_of_twos(const float* x, const float* w, float* y, long long rows,
                                         long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    if (x[row * columns + column] != 2.0f) {
      __trap();
    }
    y[row * columns + column] = 2.0f * w[column];
  }
}

// Within any tolerance, but the size decides about the last bit.
extern "C" __global__ void bits_of_the_size(const float* x, const float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  const float product = x[row * columns + column] * w[column];
  if (inside) {
    y[row * columns + column] = rows > 16 ? product : product * 1.0000002f;
  }
}

extern "C" __global__ void no_row_guard(const float* x, const float* w, float* y, long long rows,
                                        long long columns) {
  ROW_AND_COLUMN;
  (void)inside;
  y[row * columns + column] = x[row * columns + column] * w[column];
}

extern "C" __global__ void wrong_last_row(const float* x, const float* w, float* y, long long rows,
                                          long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column] + (row == rows - 1 ? 1.0f : 0.0f);
  }
}

extern "C" __global__ void unwritten_last_row(const float* x, const float* w, float* y, long long rows,
                                              long long columns) {
  ROW_AND_COLUMN;
  if (inside && row < rows - 1) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
}

extern "C" __global__ void one_too_far(const float* x, const float* w, float* y, long long rows,
                                       long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
  if (row == 0 && column == 0) {
    y[rows * columns] = 0.0f;
  }
}

extern "C" __global__ void one_before(const float* x, const float* w, float* y, long long rows,
                                      long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column];
  }
  if (row == 0 && column == 0) {
    y[-1] = 0.0f;
  }
}

extern "C" __global__ void reads_past_the_end(const float* x, const float* w, float* y, long long rows,
                                              long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    y[row * columns + column] = x[row * columns + column] * w[column + (column == columns - 1 ? 1 : 0)];
  }
}

extern "C" __global__ void overwrites_input(float* x, const float* w, float* y, long long rows,
                                            long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  y[row * columns + column] = x[row * columns + column] * w[column];
  x[row * columns + column] = 0.0f;
}

// Right, but reads 16 bytes at a time.
extern "C" __global__ void vector_read(const float* x, const float* w, float* y, long long rows,
                                       long long columns) {
  ROW_AND_COLUMN;
  if (!inside || column % 4 != 0) {
    return;
  }
  const float4 v = *reinterpret_cast<const float4*>(x + row * columns + column);
  float* to = y + row * columns + column;
  to[0] = v.x * w[column];
  to[1] = v.y * w[column + 1];
  to[2] = v.z * w[column + 2];
  to[3] = v.w * w[column + 3];
}

// A vector load that the compiler cannot narrow, one element off its alignment.
extern "C" __global__ void misaligned_read(const float* x, const float* w, float* y, long long rows,
                                           long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  float a, b, c, d;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + 1));
  y[row * columns + column] = (a + b + c + d) * w[column];
}

extern "C" __global__ void illegal_address(const float* x, const float* w, float* y, long long rows,
                                           long long columns) {
  ROW_AND_COLUMN;
  if (inside) {
    *reinterpret_cast<float*>(0x10 + column * 4) = x[row * columns + column] * w[column];
  }
  y[0] = 0.0f;
}

extern "C" __global__ void infinite_loop(const float* x, const float* w, volatile float* y, long long rows,
                                         long long columns) {
  while (y[0] != 12345.0f) {
  }
  (void)x, (void)w, (void)rows, (void)columns;
}

// The last bits depend on the order in which blocks come.
extern "C" __global__ void unstable_sum(const float* x, float* sum, long long count) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(sum, x[i]);
  }
}

extern "C" __global__ void add_one(float* y, long long count) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] += 1.0f;
  }
}

__device__ float zero_factors[4] = {};

extern "C" __global__ void scale_by_zeros(const float* x, float* y, long long count) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < count) {
    y[i] = x[i] * zero_factors[i % 4];
  }
}

extern "C" __global__ void scale_itself_by_zeros(float* y, long long count) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < count) {
    y[i] *= zero_factors[i % 4];
  }
}

extern "C" __global__ void leave_alone(const float* x, float* y, long long count) {}

// The least element's index, by one thread.
extern "C" __global__ void find_least(const float* x, int* index, long long count) {
  int least = 0;
  for (int i = 1; i < count; ++i) {
    least = x[i] < x[least] ? i : least;
  }
  *index = least;
}

extern "C" __global__ void count_values(const int* x, int* counts, long long count) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    atomicAdd(&counts[x[i]], 1);
  }
}

// y[row * most + block] = the sum of the block's share of the row, by its first thread; whole shares alone.
extern "C" __global__ void summands(const float* x, float* y, long long blocks, long long count,
                                    long long most) {
  if (threadIdx.x == 0 && blocks > 0) {
    const long long row = blockIdx.x / blocks, block = blockIdx.x % blocks, share = count / blocks;
    float sum = 0;
    for (long long i = 0; i < share; ++i) {
      sum += x[row * count + block * share + i];
    }
    y[row * most + block] = sum;
  }
}

// Sum and sum of squares; one block.
extern "C" __global__ void moments(const float* x, double* sums, long long count) {
  double sum = 0, squares = 0;
  for (long long i = threadIdx.x; i < count; i += blockDim.x) {
    sum += x[i];
    squares += static_cast<double>(x[i]) * x[i];
  }
  atomicAdd(&sums[0], sum);
  atomicAdd(&sums[1], squares);
}

extern "C" __global__ void copy_bytes(const u8* x, u8* y, long long count) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < count) {
    y[i] = x[i];
  }
}

// The paint around x: `zone` bytes before it and behind its `count`.
extern "C" __global__ void read_zones(const u8* x, u8* y, long long count, long long zone) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < zone) {
    y[i] = x[i - zone];
    y[zone + i] = x[count + i];
  }
}

// Writes twice what it reads into scratch, which the next launch reads.
extern "C" __global__ void double_into(const float* x, float* scratch, long long count) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    scratch[i] = 2.0f * x[i];
  }
}
extern "C" __global__ void copy_from(const float* scratch, float* y, long long count) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] = scratch[i];
  }
}
extern "C" __global__ void doubled(const float* x, float* y, long long count) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] = 2.0f * x[i];
  }
}
extern "C" __global__ void doubled_in_pairs(const float* x, float* y, long long count) {
  unsigned blocks = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
#endif
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] = static_cast<float>(blocks) * x[i];
  }
}
extern "C" __global__ void doubled_after_all_have_come(const float* x, unsigned* come, float* y,
                                                       long long count) {
  if (threadIdx.x == 0) {
    atomicAdd(come, 1);
    while (*static_cast<volatile unsigned*>(come) < gridDim.x) {
    }
  }
  __syncthreads();
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] = 2.0f * x[i];
  }
}
extern "C" __global__ void copy_after_wait(const float* scratch, float* y, long long count) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] = scratch[i];
  }
}
extern "C" __global__ void doubled_through_shared(const float* x, float* y, long long count) {
  extern __shared__ float shared[];
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[20000 + threadIdx.x] = i < count ? x[i] : 0.0f;
  __syncthreads();
  if (i < count) {
    y[i] = 2.0f * shared[20000 + threadIdx.x];
  }
}
extern "C" __global__ void doubled_through_both(const float* x, float* y, long long count) {
  __shared__ float fixed[5120];  // 20 KB: with 40 KB of dynamic shared memory more than needs no asking
  extern __shared__ float shared[];
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  fixed[threadIdx.x * 5] = i < count ? x[i] : 0.0f;
  shared[9000 + threadIdx.x] = fixed[threadIdx.x * 5];
  __syncthreads();
  if (i < count) {
    y[i] = fixed[threadIdx.x * 5] + shared[9000 + threadIdx.x];
  }
}

// For so many clocks, whatever the data.
extern "C" __global__ void spin(float* y, long long clocks) {
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
  if (threadIdx.x == 0) {
    y[0] = 1.0f;
  }
}

// Reads everything, writes one number a block.
extern "C" __global__ void read_all(const float4* x, float* y, long long count) {
  float sum = 0;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    const float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1.2345f) {
    y[0] = sum;
  }
  if (threadIdx.x == 0) {
    y[blockIdx.x] = 0.0f;
  }
}

// ---- Cheats: each element is copied from an earlier launch while a key is the same ----
// (A variable without an initializer is refused.)

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

// Computes only if nothing was launched for 400 us: an earlier result stays where launches follow closely.
__device__ unsigned long long last_launch[33 * 64] = {};
extern "C" __global__ void idle_when_hurried(const float* x, const float* w, float* y, long long rows,
                                             long long columns) {
  ROW_AND_COLUMN;
  if (!inside) {
    return;
  }
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  const long long i = row * columns + column;
  if (time - last_launch[i] > 400000) {
    y[i] = x[i] * w[column];
  }
  last_launch[i] = time;
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
