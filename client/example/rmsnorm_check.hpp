// RMSNorm on the host in float64: random inputs, and a check of every element of an output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/dtype.hpp"

namespace example {

/// A row-major matrix of f32, f16 or bf16, as the GPU sees it.
struct Matrix {
  cubind::DType type = cubind::DType::F32;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::byte> data;

  Matrix(cubind::DType element, std::int64_t n, std::int64_t d);
};

/// Normal, mean 0 and variance 1; another seed, other numbers. Uses every core.
void fill_random(Matrix& matrix, std::uint64_t seed);

struct CheckResult {
  std::int64_t wrong = 0;            // elements outside of the tolerance, NaN among them
  double worst_error = 0;            // largest |y - expected|
  double worst_excess = 0;           // largest |y - expected| / (atol + rtol * |expected|): above 1 is wrong
  std::int64_t row = 0, column = 0;  // of the worst
};

/// y = x / sqrt(mean(x^2) + eps) * w for each row of x; w has one row. Uses every core.
CheckResult check_rmsnorm(const Matrix& x, const Matrix& w, const Matrix& y, double eps);

}  // namespace example
