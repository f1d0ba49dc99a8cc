// The device worker's own kernels: fills, red zones, hashes, comparison, clearing. No header is included, so
// that NVRTC of any version makes the same of it. tuner/worker/make_device_kernels.py turns this file into
// device_kernels.ptx and device_kernels.cubins, which are checked in: a machine that builds cubind needs no
// CUDA compiler, and the driver compiles the PTX for whatever GPU none of the cubins is for.
//
// Element types are numbered as cubind::DType; the arithmetic of red zones and comparisons is that of
// tuner/verify, which is tested without a GPU, and a GPU test holds the two against each other.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum Type { kF64, kF32, kF16, kBf16, kE4m3, kE5m2, kI64, kI32, kI8, kU8 };
enum FillKind { kNormal, kUniform, kConstant, kIota, kPermutation, kChoice };

__device__ __forceinline__ u64 thread_index() {
  return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x;
}
__device__ __forceinline__ u64 thread_count() { return gridDim.x * static_cast<u64>(blockDim.x); }

// ---- Elements
// ----------------------------------------------------------------------------------------------------------

__device__ float narrow_to_float(u32 bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const u32 mantissa_ones = (1u << mantissa_bits) - 1;
  const u32 exponent_ones = (1u << exponent_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const u32 mantissa = bits & mantissa_ones;
  const u32 exponent = (bits >> mantissa_bits) & exponent_ones;
  const u32 sign = (bits >> (exponent_bits + mantissa_bits)) << 31;
  float magnitude;
  if (exponent == exponent_ones && (has_infinity || mantissa == mantissa_ones)) {
    magnitude = __int_as_float(has_infinity && mantissa == 0 ? 0x7f800000 : 0x7fc00000);
  } else if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * __int_as_float((127 + 1 - bias - mantissa_bits) << 23);
  } else {
    magnitude = __int_as_float(((static_cast<int>(exponent) - bias + 127) << 23) |
                               (mantissa << (23 - mantissa_bits)));
  }
  return __int_as_float(__float_as_int(magnitude) | sign);
}

// Rounds to nearest even; too large values become infinity, or NaN where there is none.
__device__ u32 float_to_narrow(float value, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const u32 bits = __float_as_int(value);
  const u32 sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const u32 body = bits & 0x7fffffff;
  const u32 nan_bits = (1u << (exponent_bits + mantissa_bits)) - 1;
  if (body > 0x7f800000) {
    return sign | nan_bits;
  }
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(body >> 23) - 127;
  int shift = 23 - mantissa_bits;
  u32 mantissa = (body & 0x7fffff) | 0x800000;
  u32 biased = static_cast<u32>(exponent + bias);
  if (exponent < 1 - bias) {  // subnormal in the narrow type
    shift += 1 - bias - exponent;
    biased = 0;
    if (shift > 24) {
      return sign;
    }
  }
  const u32 kept = mantissa >> shift;
  const u32 rest = mantissa & ((1u << shift) - 1);
  const u32 half = 1u << (shift - 1);
  const u32 rounded = kept + ((rest > half || (rest == half && (kept & 1))) ? 1 : 0);
  // The hidden bit adds one to the exponent field, and so does a carry out of the mantissa.
  const u32 result = biased == 0 ? rounded : ((biased - 1) << mantissa_bits) + rounded;
  const u32 infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const u32 largest = has_infinity ? infinity - 1 : nan_bits - 1;
  if (exponent > bias + 1 || result > largest) {
    return sign | (has_infinity ? infinity : nan_bits);
  }
  return sign | result;
}

// The two types that most buffers have, in a few instructions each.
__device__ float half_to_float(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ u16 float_to_half(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
// The upper half of a float, whose exponents it has: rounding carries from the lower half.
__device__ float bf16_to_float(u16 bits) { return __int_as_float(static_cast<u32>(bits) << 16); }
__device__ u16 float_to_bf16(float value) {
  const u32 bits = __float_as_int(value);
  if (value != value) {
    return static_cast<u16>((bits >> 16) | 0x7fff);
  }
  return static_cast<u16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
__device__ T saturated(double value, double low, double high, T lowest, T highest) {
  if (value != value) {
    return 0;
  }
  if (value <= low) {
    return lowest;
  }
  if (value >= high) {
    return highest;
  }
  return static_cast<T>(value);
}

__device__ void store(void* data, int type, u64 i, double value) {
  switch (type) {
    case kF64:
      static_cast<double*>(data)[i] = value;
      break;
    case kF32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case kF16:
      static_cast<u16*>(data)[i] = float_to_half(static_cast<float>(value));
      break;
    case kBf16:
      static_cast<u16*>(data)[i] = float_to_bf16(static_cast<float>(value));
      break;
    case kE4m3:
      static_cast<u8*>(data)[i] = float_to_narrow(static_cast<float>(value), 4, 3, false);
      break;
    case kE5m2:
      static_cast<u8*>(data)[i] = float_to_narrow(static_cast<float>(value), 5, 2, true);
      break;
    case kI64:
      static_cast<long long*>(data)[i] =
          saturated<long long>(value, -9223372036854775808.0, 9223372036854775808.0, 1ll << 63, ~(1ll << 63));
      break;
    case kI32:
      static_cast<int*>(data)[i] = saturated<int>(value, -2147483648.0, 2147483647.0, 1 << 31, ~(1 << 31));
      break;
    case kI8:
      static_cast<signed char*>(data)[i] = saturated<signed char>(value, -128.0, 127.0, -128, 127);
      break;
    case kU8:
      static_cast<u8*>(data)[i] = saturated<u8>(value, 0.0, 255.0, 0, 255);
      break;
  }
}

__device__ double load_floating(const void* data, int type, u64 i) {
  switch (type) {
    case kF64:
      return static_cast<const double*>(data)[i];
    case kF32:
      return static_cast<const float*>(data)[i];
    case kF16:
      return half_to_float(static_cast<const u16*>(data)[i]);
    case kBf16:
      return bf16_to_float(static_cast<const u16*>(data)[i]);
    case kE4m3:
      return narrow_to_float(static_cast<const u8*>(data)[i], 4, 3, false);
    default:
      return narrow_to_float(static_cast<const u8*>(data)[i], 5, 2, true);
  }
}

__device__ long long load_integer(const void* data, int type, u64 i) {
  switch (type) {
    case kI64:
      return static_cast<const long long*>(data)[i];
    case kI32:
      return static_cast<const int*>(data)[i];
    case kI8:
      return static_cast<const signed char*>(data)[i];
    default:
      return static_cast<const u8*>(data)[i];
  }
}

__device__ bool is_integer(int type) { return type >= kI64; }

__device__ double load(const void* data, int type, u64 i) {
  return is_integer(type) ? static_cast<double>(load_integer(data, type, i)) : load_floating(data, type, i);
}

// ---- Fills
// -------------------------------------------------------------------------------------------------------------

// SplitMix64's mixer: element i of a fill is a function of seed and i, whatever the launch.
__device__ u64 mixed(u64 seed, u64 i) {
  u64 z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// In [0, 1), 53 bits.
__device__ double uniform(u64 bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Box and Muller; the logarithm's argument is in (0, 1].
__device__ double normal(u64 bits) {
  const float radius = static_cast<float>(static_cast<u32>(bits >> 32) + 1.0f) * 0x1p-32f;
  const float angle = static_cast<float>(static_cast<u32>(bits)) * 0x1p-31f;
  return sqrtf(-2.0f * logf(radius)) * cospif(angle);
}

// A bijection of [0, n): a Feistel network over the next even power of two, walked until it lands below n.
__device__ u64 permuted(u64 i, u64 n, u64 seed) {
  int half_bits = 1;
  while ((1ull << (2 * half_bits)) < n) {
    ++half_bits;
  }
  const u64 mask = (1ull << half_bits) - 1;
  do {
    u64 left = i >> half_bits;
    u64 right = i & mask;
    for (u64 round = 0; round < 6; ++round) {
      const u64 next = left ^ (mixed(seed + round, right) & mask);
      left = right;
      right = next;
    }
    i = (left << half_bits) | right;
  } while (i >= n);
  return i;
}

// The first entry of the cumulative distribution that exceeds u.
__device__ u64 chosen(const double* cumulative, u64 count, double u) {
  u64 low = 0;
  u64 high = count - 1;
  while (low < high) {
    const u64 middle = (low + high) / 2;
    if (cumulative[middle] > u) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Whether an element is in a quarter of all that repeats after 64 grains of 2^grain_bits elements.
__device__ bool is_scattered(u64 i, int grain_bits, u64 pattern) {
  return mixed(pattern, (i >> grain_bits) % 64) % 4 == 0;
}

// grain_bits: negative: all elements; else those that are scattered.
extern "C" __global__ void cubind_fill(void* data, u64 count, int type, int kind, double a, double b,
                                       u64 seed, const double* cumulative, u64 choices, int grain_bits,
                                       u64 pattern) {
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    if (grain_bits >= 0 && !is_scattered(i, grain_bits, pattern)) {
      continue;
    }
    double value = a;
    switch (kind) {
      case kNormal:
        value = a + b * normal(mixed(seed, i));
        break;
      case kUniform:
        value = a + (b - a) * uniform(mixed(seed, i));
        break;
      case kIota:
        value = a + b * static_cast<double>(i);
        break;
      case kPermutation:
        value = static_cast<double>(permuted(i, count, seed));
        break;
      case kChoice:
        value = static_cast<double>(chosen(cumulative, choices, uniform(mixed(seed, i))));
        break;
      default:
        break;
    }
    store(data, type, i, value);
  }
}

// ---- Red zones
// ---------------------------------------------------------------------------------------------------------

struct ZoneEntry {
  u8* bytes;
  u64 size;
  u32 buffer;
  u32 side;
};

struct ZoneResult {
  u64 first_offset;  // all ones: none
  u64 changed;
};

__device__ u8 zone_byte(u32 buffer, u32 side, u64 offset) {
  const u32 word = static_cast<u32>(offset / 2);
  u32 hash = word * 0x9e3779b1u + side * 0x85ebca6bu;
  hash ^= hash >> 15;
  hash *= 0x2c1b3c6du;
  hash ^= hash >> 12;
  const bool top_of_double = word % 4 == 3;
  const u32 choices = top_of_double ? 14u : 126u;
  const u32 value = (top_of_double ? 0x7ff1u : 0x7f81u) + (hash % choices + buffer * 5u) % choices;
  return static_cast<u8>(offset % 2 == 0 ? value & 0xffu : value >> 8);
}

// blockIdx.y chooses the zone.
extern "C" __global__ void cubind_paint_zones(const ZoneEntry* zones) {
  const ZoneEntry zone = zones[blockIdx.y];
  for (u64 i = thread_index(); i < zone.size; i += thread_count()) {
    zone.bytes[i] = zone_byte(zone.buffer, zone.side, i);
  }
}

extern "C" __global__ void cubind_check_zones(const ZoneEntry* zones, ZoneResult* results) {
  const ZoneEntry zone = zones[blockIdx.y];
  for (u64 i = thread_index(); i < zone.size; i += thread_count()) {
    if (zone.bytes[i] != zone_byte(zone.buffer, zone.side, i)) {
      atomicMin(&results[blockIdx.y].first_offset, i);
      atomicAdd(&results[blockIdx.y].changed, 1ull);
    }
  }
}

// ---- Hash, comparison, clearing
// ----------------------------------------------------------------------------------------

// Adds a sum over four-byte groups that depends on their places; the last group may be short. Any alignment.
extern "C" __global__ void cubind_hash(const u8* data, u64 bytes, u64* sum) {
  const bool aligned = reinterpret_cast<u64>(data) % 4 == 0;
  u64 local = 0;
  for (u64 group = thread_index(); group * 4 < bytes; group += thread_count()) {
    u32 word = 0;
    if (aligned && group * 4 + 4 <= bytes) {
      word = reinterpret_cast<const u32*>(data)[group];
    } else {
      for (u64 k = 0; k < 4 && group * 4 + k < bytes; ++k) {
        word |= static_cast<u32>(data[group * 4 + k]) << (8 * k);
      }
    }
    local += mixed(word, group);
  }
  for (int step = 16; step > 0; step /= 2) {
    local += __shfl_down_sync(0xffffffffu, local, step);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(sum, local);
  }
}

struct Partial {
  double worst_excess;
  u64 worst_index;
  u64 mismatches;
};

// Divides only where the result is at least `least`, which few elements' is: 0 stands for the others.
__device__ double bounded(double difference, double magnitude, double rtol, double atol, double least) {
  const double allowed = atol + rtol * magnitude;
  if (difference <= least * allowed) {
    return 0;
  }
  const double value = allowed > 0 ? difference / allowed : 1e300;
  return value < 1e300 ? value : 1e300;
}

__device__ double excess(const void* out, int out_type, const void* ref, int ref_type, u64 i, double rtol,
                         double atol, double least) {
  if (is_integer(out_type) && is_integer(ref_type)) {
    const long long a = load_integer(out, out_type, i);
    const long long b = load_integer(ref, ref_type, i);
    const u64 difference =
        a > b ? static_cast<u64>(a) - static_cast<u64>(b) : static_cast<u64>(b) - static_cast<u64>(a);
    return bounded(static_cast<double>(difference), fabs(static_cast<double>(b)), rtol, atol, least);
  }
  const double a = load(out, out_type, i);
  const double b = load(ref, ref_type, i);
  if (isnan(a) || isnan(b)) {
    return isnan(a) && isnan(b) ? 0 : 1e300;
  }
  if (isinf(a) || isinf(b)) {
    return a == b ? 0 : 1e300;
  }
  return bounded(fabs(a - b), fabs(b), rtol, atol, least);
}

__device__ void take_worse(Partial& mine, const Partial& other) {
  mine.mismatches += other.mismatches;
  const bool earlier = other.worst_excess == mine.worst_excess && other.worst_index < mine.worst_index;
  if (other.worst_excess > mine.worst_excess || earlier) {
    mine.worst_excess = other.worst_excess;
    mine.worst_index = other.worst_index;
  }
}

__device__ u32 element_bytes(int type) {
  switch (type) {
    case kF64:
    case kI64:
      return 8;
    case kF32:
    case kI32:
      return 4;
    case kF16:
    case kBf16:
      return 2;
    default:
      return 1;
  }
}

__device__ bool same_16_bytes(const void* out, const void* ref, u64 group) {
  const uint4 a = static_cast<const uint4*>(out)[group];
  const uint4 b = static_cast<const uint4*>(ref)[group];
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

// One Partial a block, which the host folds; 256 threads. Where types and alignment allow it, 16 bytes are
// looked at together: elements of the same bits do not depart from each other.
extern "C" __global__ void cubind_compare(const void* out, int out_type, const void* ref, int ref_type,
                                          u64 count, double rtol, double atol, Partial* partials) {
  __shared__ Partial shared[256];
  Partial mine = {0, ~0ull, 0};
  const bool grouped =
      out_type == ref_type && (reinterpret_cast<u64>(out) | reinterpret_cast<u64>(ref)) % 16 == 0;
  const u64 step = grouped ? 16 / element_bytes(out_type) : 1;
  for (u64 group = thread_index(); group * step < count; group += thread_count()) {
    const u64 end = group * step + step;
    if (grouped && end <= count && same_16_bytes(out, ref, group)) {
      continue;
    }
    for (u64 i = group * step; i < end && i < count; ++i) {
      // A little less than what counts: the product that decides is rounded otherwise than the quotient.
      const double least = 0.999999 * (mine.worst_excess < 1 ? mine.worst_excess : 1);
      const double value = excess(out, out_type, ref, ref_type, i, rtol, atol, least);
      if (value > 1) {
        ++mine.mismatches;
      }
      if (value > mine.worst_excess) {
        mine.worst_excess = value;
        mine.worst_index = i;
      }
    }
  }
  shared[threadIdx.x] = mine;
  for (u32 step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) {
      take_worse(shared[threadIdx.x], shared[threadIdx.x + step]);
    }
  }
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = shared[0];
  }
}

// A clearing that counts as work of the variant. A kernel and not a memset, so that the timer sees it as it
// sees the variant.
extern "C" __global__ void cubind_clear(u8* data, u64 bytes) {
  if (reinterpret_cast<u64>(data) % 16 == 0) {
    const uint4 zero = make_uint4(0, 0, 0, 0);
    for (u64 i = thread_index(); i < bytes / 16; i += thread_count()) {
      reinterpret_cast<uint4*>(data)[i] = zero;
    }
    for (u64 i = bytes / 16 * 16 + thread_index(); i < bytes; i += thread_count()) {
      data[i] = 0;
    }
  } else {
    for (u64 i = thread_index(); i < bytes; i += thread_count()) {
      data[i] = 0;
    }
  }
}

// ---- Timers
// ------------------------------------------------------------------------------------------------------------

// Brings the data into the L2 as it is in memory: nothing has to be written back for what comes later. No
// compiler can exclude that `nowhere` is written.
extern "C" __global__ void cubind_read(const uint4* data, u64 count, u32* nowhere) {
  u32 sum = 0;
#pragma unroll 4
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    const uint4 vector = data[i];
    sum ^= vector.x ^ vector.y ^ vector.z ^ vector.w;
  }
  if (sum == 0x9e3779b9u) {
    *nowhere = sum;
  }
}

// Runs for about so many clocks: what the timer's tick is measured with.
extern "C" __global__ void cubind_spin(u64 clocks) {
  const long long start = clock64();
  while (static_cast<u64>(clock64() - start) < clocks) {
  }
}

// A kernel may read what the one before has left in shared memory.
extern "C" __global__ void cubind_wipe_shared(u32 bytes) {
  extern __shared__ u32 words[];
  for (u32 i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
    static_cast<volatile u32*>(words)[i] = 0xffffffffu;
  }
}
