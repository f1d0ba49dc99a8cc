#include <algorithm>
#include <limits>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

namespace device {
#include "variants/softmax/softmax_forward_reference.cu"
}  // namespace device

namespace cubind::test {
namespace {

constexpr long long kRows = 3, kColumns = 7;

Values softmax(const Values& x) {
  Values y(x.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (std::size_t d = 0; d < kColumns; ++d) {
      sum += std::exp(x[row * kColumns + d]);
    }
    for (std::size_t d = 0; d < kColumns; ++d) {
      y[row * kColumns + d] = std::exp(x[row * kColumns + d]) / sum;
    }
  }
  return y;
}

Values reference(const Values& x) {
  Values y(x.size());
  for_each_block(kRows, [&] { device::softmax_forward_reference(x.data(), y.data(), kRows, kColumns); });
  return y;
}

}  // namespace

TEST_CASE("the reference of softmax_forward holds where exponentials would overflow") {
  Values x = normal_values(kRows * kColumns, 2);
  const Values y = softmax(x);
  for (double& value : x) {
    value += 1000;
  }
  check_close(reference(x), y);
}

TEST_CASE(
    "a row of nothing but -inf and a row with a NaN or +inf give NaN in the reference of softmax_forward") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Values x = normal_values(kRows * kColumns, 3);
  std::fill_n(x.begin(), kColumns, -kInfinity);
  x[kColumns + 2] = std::numeric_limits<double>::quiet_NaN();
  x[2 * kColumns + 4] = kInfinity;
  for (const double value : reference(x)) {
    CHECK(std::isnan(value));
  }
}

}  // namespace cubind::test
