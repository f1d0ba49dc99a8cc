#include <algorithm>
#include <functional>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

namespace device {
namespace layernorm {
#include "variants/layernorm/layernorm_forward_reference.cu"
}  // namespace layernorm
#include "variants/layernorm/layernorm_backward_reference.cu"
#include "variants/rmsnorm/reference.cu"
#include "variants/rmsnorm/rmsnorm_backward_reference.cu"
#include "variants/rmsnorm/rmsnorm_fused_reference.cu"
}  // namespace device

namespace cubind::test {
namespace {

constexpr long long kRows = 4, kColumns = 6;
constexpr double kEps = 1e-3;

/// The statistics of each row that a backward pass is given, as it is given them: in float32.
struct Saved {
  std::vector<float> mean, rstd;
};

/// y = normalized x * w + b; the mean is 0 where the norm is not centered.
Values norm(const Values& x, const Values& w, const Values& b, bool centered, Saved* saved = nullptr) {
  Values y(x.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    double mean = 0, squares = 0;
    for (std::size_t d = 0; centered && d < kColumns; ++d) {
      mean += x[row * kColumns + d] / kColumns;
    }
    for (std::size_t d = 0; d < kColumns; ++d) {
      squares += (x[row * kColumns + d] - mean) * (x[row * kColumns + d] - mean) / kColumns;
    }
    const double rstd = 1 / std::sqrt(squares + kEps);
    for (std::size_t d = 0; d < kColumns; ++d) {
      y[row * kColumns + d] = (x[row * kColumns + d] - mean) * rstd * w[d] + b[d];
    }
    if (saved) {
      saved->mean.push_back(static_cast<float>(mean));
      saved->rstd.push_back(static_cast<float>(rstd));
    }
  }
  return y;
}

Values as_values(const std::vector<float>& from) { return {from.begin(), from.end()}; }

struct Case {
  Values x = normal_values(kRows * kColumns, 1), w = normal_values(kColumns, 2),
         b = normal_values(kColumns, 3), dy = normal_values(kRows * kColumns, 4),
         dx = Values(kRows * kColumns), dw = Values(kColumns), db = Values(kColumns);

  void check_gradients(bool centered) const {
    const auto loss = [&](const Values& at, const Values& weight, const Values& bias) {
      return dot(norm(at, weight, bias, centered), dy);
    };
    check_close(dx, numerical_gradient([&](const Values& at) { return loss(at, w, b); }, x));
    check_close(dw, numerical_gradient([&](const Values& at) { return loss(x, at, b); }, w));
    if (centered) {
      check_close(db, numerical_gradient([&](const Values& at) { return loss(x, w, at); }, b));
    }
  }
};

}  // namespace

TEST_CASE("the reference of rmsnorm_forward is the formula") {
  const Case c;
  Values y(c.x.size());
  for_each_block(kRows, [&] {
    device::rmsnorm_forward_reference(c.x.data(), c.w.data(), y.data(), kRows, kColumns, float(kEps));
  });
  check_close(y, norm(c.x, c.w, Values(kColumns, 0.0), false));
}

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
  Saved expected;
  check_close(y, norm(expected_sum, c.w, Values(kColumns, 0.0), false, &expected));
  check_close(sum, expected_sum);
  check_close(as_values(rstd), as_values(expected.rstd));
}

TEST_CASE("without its flags the reference of rmsnorm_fused_forward touches neither residual, sum nor rstd") {
  const Case c;
  Values y(c.x.size());
  for_each_block(kRows, [&] {
    device::rmsnorm_fused_forward_reference<double, 0, 0>(c.x.data(), nullptr, c.w.data(), nullptr, y.data(),
                                                          nullptr, kRows, kColumns, float(kEps));
  });
  check_close(y, norm(c.x, c.w, Values(kColumns, 0.0), false));
}

TEST_CASE("the reference of layernorm_forward is the formula and saves mean and rstd") {
  const Case c;
  Values y(c.x.size());
  Saved found{std::vector<float>(kRows), std::vector<float>(kRows)}, expected;
  for_each_block(kRows, [&] {
    device::layernorm::layernorm_forward_reference(c.x.data(), c.w.data(), c.b.data(), y.data(),
                                                   found.mean.data(), found.rstd.data(), kRows, kColumns,
                                                   float(kEps));
  });
  check_close(y, norm(c.x, c.w, c.b, true, &expected));
  check_close(as_values(found.mean), as_values(expected.mean));
  check_close(as_values(found.rstd), as_values(expected.rstd));
}

TEST_CASE("the reference of layernorm_backward is the numerical gradient of LayerNorm") {
  Case c;
  Saved saved;
  norm(c.x, c.w, c.b, true, &saved);
  for_each_block(kRows, [&] {
    device::layernorm_backward_reference(c.x.data(), c.w.data(), c.dy.data(), saved.mean.data(),
                                         saved.rstd.data(), c.dx.data(), kRows, kColumns);
  });
  for_each_block(kColumns, [&] {
    device::layernorm_backward_columns_reference(c.x.data(), c.dy.data(), saved.mean.data(),
                                                 saved.rstd.data(), c.dw.data(), c.db.data(), kRows,
                                                 kColumns);
  });
  c.check_gradients(true);
}

TEST_CASE("the reference of rmsnorm_backward is the numerical gradient of RMSNorm") {
  Case c;
  Saved saved;
  norm(c.x, c.w, c.b, false, &saved);
  for_each_block(kRows, [&] {
    device::rmsnorm_backward_reference(c.x.data(), c.w.data(), c.dy.data(), saved.rstd.data(), c.dx.data(),
                                       kRows, kColumns);
  });
  for_each_block(kColumns, [&] {
    device::rmsnorm_backward_columns_reference(c.x.data(), c.dy.data(), saved.rstd.data(), c.dw.data(), kRows,
                                               kColumns);
  });
  c.check_gradients(false);
}

}  // namespace cubind::test
