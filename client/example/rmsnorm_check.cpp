#include "client/example/rmsnorm_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "plan/narrow_float.hpp"

namespace example {
namespace {

using cubind::DType;

struct Tolerance {
  double rtol, atol;
};

// The kernel spec's.
Tolerance tolerance_of(DType type) {
  switch (type) {
    case DType::Bf16:
      return {1.6e-2, 1e-5};
    case DType::F16:
      return {2e-3, 1e-5};
    case DType::F32:
      return {1e-5, 1e-6};
    default:
      throw cubind::Error(cubind::ErrorCode::InvalidArgument, "T", "is one of bf16, f16, f32");
  }
}

double decode_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value = exponent == 31 ? (mantissa == 0 ? INFINITY : NAN) : std::ldexp(mantissa, -24);
  if (exponent > 0 && exponent < 31) {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return bits >> 15 != 0 ? -value : value;
}

double load(const Matrix& matrix, std::int64_t index) {
  if (matrix.type == DType::F32) {
    float value = 0;
    std::memcpy(&value, matrix.data.data() + 4 * index, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, matrix.data.data() + 2 * index, 2);
  return matrix.type == DType::F16 ? decode_f16(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16);
}

void store(Matrix& matrix, std::int64_t index, double value) {
  if (matrix.type == DType::F32) {
    const float rounded = static_cast<float>(value);
    std::memcpy(matrix.data.data() + 4 * index, &rounded, 4);
  } else {
    const std::uint16_t bits = cubind::encode_narrow(matrix.type, value);
    std::memcpy(matrix.data.data() + 2 * index, &bits, 2);
  }
}

// Calls `work` with ranges of rows on every core.
void for_rows(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t count = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, rows);
  std::vector<std::jthread> threads;
  for (std::int64_t i = 0; i < count; ++i) {
    threads.emplace_back(
        [&work, first = rows * i / count, last = rows * (i + 1) / count] { work(first, last); });
  }
}

// SplitMix64: enough for test data.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The sum of four uniform numbers, scaled to variance 1.
double next_normal(std::uint64_t& state) {
  const std::uint64_t bits = next_random(state);
  const double sum =
      static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (sum / 65536 - 2) * std::sqrt(3.0);
}

void check_row(const Matrix& x, const Matrix& w, const Matrix& y, double eps, std::int64_t row,
               CheckResult& result) {
  const Tolerance tolerance = tolerance_of(y.type);
  double squares = 0;
  for (std::int64_t i = 0; i < x.columns; ++i) {
    const double value = load(x, row * x.columns + i);
    squares += value * value;
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.columns) + eps);
  for (std::int64_t i = 0; i < x.columns; ++i) {
    const double expected = load(x, row * x.columns + i) * scale * load(w, i);
    const double error = std::fabs(load(y, row * x.columns + i) - expected);
    const double excess = error / (tolerance.atol + tolerance.rtol * std::fabs(expected));
    result.wrong += !(excess <= 1);
    if (!(excess <= result.worst_excess)) {  // also for NaN
      result.worst_excess = std::isnan(excess) ? INFINITY : excess;
      result.row = row;
      result.column = i;
    }
    result.worst_error = std::isnan(error) ? INFINITY : std::max(result.worst_error, error);
  }
}

}  // namespace

Matrix::Matrix(DType element, std::int64_t n, std::int64_t d)
    : type(element), rows(n), columns(d), data(static_cast<std::size_t>(n * d) * cubind::size_of(element)) {
  tolerance_of(element);  // refuses other types
}

void fill_random(Matrix& matrix, std::uint64_t seed) {
  for_rows(matrix.rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      std::uint64_t state = seed ^ (static_cast<std::uint64_t>(row) * 0xd1342543de82ef95);
      for (std::int64_t i = 0; i < matrix.columns; ++i) {
        store(matrix, row * matrix.columns + i, next_normal(state));
      }
    }
  });
}

CheckResult check_rmsnorm(const Matrix& x, const Matrix& w, const Matrix& y, double eps) {
  CheckResult total;
  std::mutex mutex;  // guards total
  for_rows(x.rows, [&](std::int64_t first, std::int64_t last) {
    CheckResult part;
    for (std::int64_t row = first; row < last; ++row) {
      check_row(x, w, y, eps, row, part);
    }
    const std::lock_guard lock(mutex);
    const CheckResult& worse = part.worst_excess > total.worst_excess ? part : total;
    total = {total.wrong + part.wrong, std::max(total.worst_error, part.worst_error), worse.worst_excess,
             worse.row, worse.column};
  });
  return total;
}

}  // namespace example
