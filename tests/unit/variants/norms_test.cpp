#include <algorithm>
#include <functional>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

namespace device {
#include "variants/rmsnorm/rmsnorm_fused_reference.cu"
}  // namespace device

namespace cubind::test {
namespace {

constexpr long long kRows = 4, kColumns = 6;
constexpr double kEps = 1e-3;

/// y = x * rstd * w
Values norm(const Values& x, const Values& w, Values* saved_rstd = nullptr) {
  Values y(x.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (std::size_t d = 0; d < kColumns; ++d) {
      squares += x[row * kColumns + d] * x[row * kColumns + d] / kColumns;
    }
    const double rstd = 1 / std::sqrt(squares + kEps);
    for (std::size_t d = 0; d < kColumns; ++d) {
      y[row * kColumns + d] = x[row * kColumns + d] * rstd * w[d];
    }
    if (saved_rstd) {
      saved_rstd->push_back(rstd);
    }
  }
  return y;
}

struct Case {
  Values x = normal_values(kRows * kColumns, 1), w = normal_values(kColumns, 2);
};

}  // namespace

TEST_CASE("the reference of rmsnorm_fused_forward is RMSNorm of the sum, which it stores with rstd") {
  const Case c;
  const Values residual = normal_values(c.x.size(), 5);
  Values sum(c.x.size()), y(c.x.size()), expected_sum(c.x.size());
  std::ranges::transform(c.x, residual, expected_sum.begin(), std::plus());
  std::vector<float> rstd(kRows);
  for_each_block(kRows, [&] {
    device::rmsnorm_fused_forward_reference<double, 1, 1>(c.x.data(), residual.data(), c.w.data(), sum.data(),
                                                          y.data(), rstd.data(), kRows, kColumns,
                                                          float(kEps));
  });
  Values expected_rstd;
  check_close(y, norm(expected_sum, c.w, &expected_rstd));
  check_close(sum, expected_sum);
  check_close({rstd.begin(), rstd.end()}, expected_rstd);
}

TEST_CASE("without its flags the reference of rmsnorm_fused_forward touches neither residual, sum nor rstd") {
  const Case c;
  Values y(c.x.size());
  for_each_block(kRows, [&] {
    device::rmsnorm_fused_forward_reference<double, 0, 0>(c.x.data(), nullptr, c.w.data(), nullptr, y.data(),
                                                          nullptr, kRows, kColumns, float(kEps));
  });
  check_close(y, norm(c.x, c.w));
}

}  // namespace cubind::test
