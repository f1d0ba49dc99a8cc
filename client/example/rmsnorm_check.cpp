#include "client/example/rmsnorm_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
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

double load(const Matrix& matrix, std::int64_t index) {
  if (matrix.type == DType::F32) {
    float value = 0;
    std::memcpy(&value, matrix.data.data() + 4 * index, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, matrix.data.data() + 2 * index, 2);
  return cubind::decode_narrow(matrix.type, bits);
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
      std::minstd_rand random(static_cast<unsigned>(seed * 0x9e3779b9 + static_cast<std::uint64_t>(row)));
      std::normal_distribution<double> normal;
      for (std::int64_t i = 0; i < matrix.columns; ++i) {
        store(matrix, row * matrix.columns + i, normal(random));
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
