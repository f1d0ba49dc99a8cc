#include "client/example/rmsnorm_check.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

namespace example {
namespace {

constexpr double kEps = 1e-6;

float* floats(Matrix& matrix) { return reinterpret_cast<float*>(matrix.data.data()); }

// Inputs and their right output in float32.
struct Sample {
  Matrix x{cubind::DType::F32, 37, 64}, w{cubind::DType::F32, 1, 64}, y{cubind::DType::F32, 37, 64};

  Sample() {
    fill_random(x, 1);
    fill_random(w, 2);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      const float* values = floats(x) + row * x.columns;
      double squares = 0;
      for (std::int64_t i = 0; i < x.columns; ++i) {
        squares += double(values[i]) * values[i];
      }
      for (std::int64_t i = 0; i < x.columns; ++i) {
        const double scale = 1 / std::sqrt(squares / 64 + kEps);
        floats(y)[row * x.columns + i] = static_cast<float>(values[i] * scale * floats(w)[i]);
      }
    }
  }
};

}  // namespace

TEST_CASE("a right output passes in every element") {
  Sample sample;
  const CheckResult result = check_rmsnorm(sample.x, sample.w, sample.y, kEps);
  CHECK(result.wrong == 0);
  CHECK(result.worst_excess < 0.1);
}

TEST_CASE("one wrong element among all is found with its place") {
  Sample sample;
  floats(sample.y)[36 * 64 + 63] += 1e-3f;
  const CheckResult result = check_rmsnorm(sample.x, sample.w, sample.y, kEps);
  CHECK(result.wrong == 1);
  CHECK(result.row == 36);
  CHECK(result.column == 63);
}

TEST_CASE("an element that was never written is found") {
  Sample sample;
  std::memset(floats(sample.y) + 5 * 64, 0xff, 4);
  const CheckResult result = check_rmsnorm(sample.x, sample.w, sample.y, kEps);
  CHECK(result.wrong == 1);
  CHECK(std::isinf(result.worst_excess));
  CHECK(result.row == 5);
}

TEST_CASE("random inputs are about normal and differ by seed") {
  Matrix a(cubind::DType::F32, 100, 100), b(cubind::DType::F32, 100, 100);
  fill_random(a, 1);
  fill_random(b, 2);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    sum += floats(a)[i];
    squares += floats(a)[i] * floats(a)[i];
  }
  CHECK(std::fabs(sum / 10000) < 0.05);
  CHECK(squares / 10000 == Approx(1).epsilon(0.05));
  CHECK(a.data != b.data);
}

}  // namespace example
