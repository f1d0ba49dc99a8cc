#include "tests/support/host_verification.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace cubind::verify {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();
constexpr Bounds kBounds{.rtol = 1e-2, .atol = 1e-3};

Comparison compare_floats(const std::vector<float>& out, const std::vector<float>& ref,
                          Bounds bounds = kBounds) {
  return compare(DType::F32, std::as_bytes(std::span(out)), DType::F32, std::as_bytes(std::span(ref)),
                 bounds);
}

TEST_CASE("equal buffers pass and have the same bits") {
  const Comparison result = compare_floats({1, -2, 0}, {1, -2, 0});
  CHECK(result.passed());
  CHECK(result.same_bits);
  CHECK(result.worst_excess == 0);
  CHECK(result.elements == 3);
}

TEST_CASE("an element may depart by atol plus rtol times the reference and no more") {
  CHECK(compare_floats({100.9F}, {100.0F}).passed());
  CHECK_FALSE(compare_floats({101.1F}, {100.0F}).passed());
  CHECK(compare_floats({0.0009F}, {0.0F}).passed());
  CHECK_FALSE(compare_floats({0.0012F}, {0.0F}).passed());
}

TEST_CASE("an excess of a thousandth is wrong") {
  CHECK(compare_floats({101.0000F}, {100.0F}).passed());
  CHECK(compare_floats({101.0020F}, {100.0F}).worst_excess == Approx(1.001).epsilon(1e-4));
  CHECK_FALSE(compare_floats({101.0020F}, {100.0F}).passed());
}

TEST_CASE("the worst excess has its first index and all wrong elements are counted") {
  const Comparison result = compare_floats({1, 5, 1, 5, 2}, {1, 1, 1, 1, 1});
  CHECK(result.mismatches == 3);
  CHECK(result.worst_index == 1);
  CHECK(result.worst_excess == Approx(4 / 0.011).epsilon(1e-6));
  CHECK_FALSE(result.same_bits);
}

TEST_CASE("NaN passes only where the reference is NaN") {
  CHECK(compare_floats({kNan}, {kNan}).passed());
  CHECK_FALSE(compare_floats({kNan}, {1}).passed());
  CHECK_FALSE(compare_floats({1}, {kNan}).passed());
  CHECK(compare_floats({kNan}, {1}).worst_excess == kUnboundedExcess);
}

TEST_CASE("an infinity passes only where the reference has the same") {
  CHECK(compare_floats({kFloatInfinity}, {kFloatInfinity}).passed());
  CHECK_FALSE(compare_floats({-kFloatInfinity}, {kFloatInfinity}).passed());
  CHECK_FALSE(compare_floats({kFloatInfinity}, {3e38F}).passed());
  CHECK_FALSE(compare_floats({3e38F}, {kFloatInfinity}).passed());
}

TEST_CASE("without a tolerance any difference is an unbounded excess") {
  CHECK(compare_floats({1}, {1}, {}).passed());
  CHECK(compare_floats({1.0000001F}, {1}, {}).worst_excess == kUnboundedExcess);
}

TEST_CASE("large integers are compared without rounding") {
  const std::vector<std::int64_t> out{(1LL << 62) + 1}, ref{1LL << 62};
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  CHECK_FALSE(compare(DType::I64, bytes(out), DType::I64, bytes(ref), {}).passed());
  CHECK(compare(DType::I64, bytes(out), DType::I64, bytes(ref), {.rtol = 0, .atol = 1}).passed());
}

TEST_CASE("a wider reference is compared by value") {
  const std::vector<std::uint16_t> out{0x3f80};  // bf16 1.0
  const std::vector<double> ref{1.001};
  const Comparison result =
      compare(DType::Bf16, std::as_bytes(std::span(out)), DType::F64, std::as_bytes(std::span(ref)), kBounds);
  CHECK(result.passed());
  CHECK_FALSE(result.same_bits);
}

}  // namespace
}  // namespace cubind::verify
