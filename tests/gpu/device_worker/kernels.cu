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
