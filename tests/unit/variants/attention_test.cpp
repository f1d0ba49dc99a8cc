#include <limits>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

// An element that the reference takes into a float is double here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
namespace device {
namespace forward {
#include "variants/flash_attention/reference.cu"
}  // namespace forward
namespace backward {
#include "variants/flash_attention/reference_backward.cu"
}  // namespace backward
}  // namespace device
#pragma GCC diagnostic pop

namespace cubind::test {
namespace {

constexpr int kHeadSize = 32, kQueryHeads = 2, kKeyHeads = 1, kQueries = 3, kKeys = 4;
constexpr float kScale = 0.25f;
constexpr unsigned int kBlock = 256;

struct Attended {
  Values o, lse;
};

double score(const Values& q, const Values& k, std::size_t query, std::size_t key) {
  double sum = 0;
  for (std::size_t d = 0; d < kHeadSize; ++d) {
    sum += q[query * kHeadSize + d] * k[key * kHeadSize + d];
  }
  return sum * double(kScale);
}

/// One batch, whose heads of queries share one of keys. With `causal` query i sees the keys up to i + keys -
/// queries.
Attended attention(const Values& q, const Values& k, const Values& v, bool causal) {
  Attended result;
  for (std::size_t row = 0; row < std::size_t{kQueryHeads} * kQueries; ++row) {
    const std::size_t seen = causal ? row % kQueries + 1 + kKeys - kQueries : kKeys;
    double total = 0;
    Values sums(kHeadSize);
    for (std::size_t key = 0; key < seen; ++key) {
      const double weight = std::exp(score(q, k, row, key));
      total += weight;
      for (std::size_t d = 0; d < kHeadSize; ++d) {
        sums[d] += weight * v[key * kHeadSize + d];
      }
    }
    for (const double sum : sums) {
      result.o.push_back(sum / total);
    }
    result.lse.push_back(std::log(total));
  }
  return result;
}

struct Case {
  static constexpr std::size_t kQueryElements = std::size_t{kQueryHeads} * kQueries * kHeadSize,
                               kKeyElements = std::size_t{kKeyHeads} * kKeys * kHeadSize;
  Values q = normal_values(kQueryElements, 1), k = normal_values(kKeyElements, 2),
         v = normal_values(kKeyElements, 3), d_o = normal_values(kQueryElements, 4);
};

/// Float32 scores and weights.
void check_near(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).epsilon(2e-6).margin(1e-5));
  }
}

template <int CAUSAL>
void check_forward() {
  const Case c;
  Values o(c.q.size());
  std::vector<float> lse(std::size_t{kQueryHeads} * kQueries);
  for_each_block_of(kBlock, static_cast<long long>(lse.size()), [&] {
    device::forward::flash_attention_forward_reference<double, kHeadSize, CAUSAL>(
        c.q.data(), c.k.data(), c.v.data(), o.data(), lse.data(), kQueryHeads, kKeyHeads, kQueries, kKeys,
        kScale);
  });
  const Attended expected = attention(c.q, c.k, c.v, CAUSAL != 0);
  check_near(o, expected.o);
  check_near({lse.begin(), lse.end()}, expected.lse);
}

template <int CAUSAL>
void check_backward() {
  const Case c;
  const Attended saved = attention(c.q, c.k, c.v, CAUSAL != 0);
  const std::vector<float> lse(saved.lse.begin(), saved.lse.end());
  Values dq(c.q.size()), dk(c.k.size()), dv(c.v.size());
  for_each_block_of(kBlock, kQueryHeads * kQueries, [&] {
    device::backward::flash_attention_backward_reference_queries<double, kHeadSize, CAUSAL>(
        c.q.data(), c.k.data(), c.v.data(), saved.o.data(), c.d_o.data(), lse.data(), dq.data(), kQueryHeads,
        kKeyHeads, kQueries, kKeys, kScale);
  });
  for_each_block_of(kBlock, kKeyHeads * kKeys, [&] {
    device::backward::flash_attention_backward_reference_keys<double, kHeadSize, CAUSAL>(
        c.q.data(), c.k.data(), c.v.data(), saved.o.data(), c.d_o.data(), lse.data(), dk.data(), dv.data(),
        kQueryHeads, kKeyHeads, kQueries, kKeys, kScale);
  });
  const auto loss = [&](const Values& q, const Values& k, const Values& v) {
    return dot(attention(q, k, v, CAUSAL != 0).o, c.d_o);
  };
  check_near(dq, numerical_gradient([&](const Values& at) { return loss(at, c.k, c.v); }, c.q));
  check_near(dk, numerical_gradient([&](const Values& at) { return loss(c.q, at, c.v); }, c.k));
  check_near(dv, numerical_gradient([&](const Values& at) { return loss(c.q, c.k, at); }, c.v));
}

}  // namespace

TEST_CASE("the reference of flash_attention_forward is softmax of the scores times the values") {
  check_forward<0>();
  check_forward<1>();
}

TEST_CASE("the reference of flash_attention_backward is the numerical gradient of attention") {
  check_backward<0>();
  check_backward<1>();
}

}  // namespace cubind::test
