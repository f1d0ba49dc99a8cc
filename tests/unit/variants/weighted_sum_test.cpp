#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

namespace device {
#include "variants/weighted_sum/weighted_sum_backward_reference.cu"
#include "variants/weighted_sum/weighted_sum_forward_reference.cu"
}  // namespace device

namespace cubind::test {
namespace {

constexpr long long kRows = 5, kColumns = 3;

Values weighted_sum(const Values& x, const Values& w) {
  Values y(kRows);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i / kColumns] += x[i] * w[i % kColumns];
  }
  return y;
}

}  // namespace

TEST_CASE("the reference of weighted_sum_forward is the sum of products") {
  const Values x = normal_values(kRows * kColumns, 1), w = normal_values(kColumns, 2);
  Values y(kRows);
  for_each_block(
      kRows, [&] { device::weighted_sum_forward_reference(x.data(), w.data(), y.data(), kRows, kColumns); });
  check_close(y, weighted_sum(x, w));
}

TEST_CASE("the reference of weighted_sum_backward is the numerical gradient of the weighted sum") {
  const Values x = normal_values(kRows * kColumns, 1), w = normal_values(kColumns, 2),
               dy = normal_values(kRows, 3);
  Values dx(x.size()), dw(w.size());
  for_each_block(kRows, [&] {
    device::weighted_sum_backward_reference(w.data(), dy.data(), dx.data(), kRows, kColumns);
  });
  for_each_block(kColumns, [&] {
    device::weighted_sum_backward_columns_reference(x.data(), dy.data(), dw.data(), kRows, kColumns);
  });
  check_close(dx, numerical_gradient([&](const Values& at) { return dot(weighted_sum(at, w), dy); }, x));
  check_close(dw, numerical_gradient([&](const Values& at) { return dot(weighted_sum(x, at), dy); }, w));
}

}  // namespace cubind::test
