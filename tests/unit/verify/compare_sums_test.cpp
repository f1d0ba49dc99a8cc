#include "tuner/verify/compare_sums.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {
namespace {

constexpr auto kUnwritten = std::bit_cast<float>(0xffffffffU);  // not written: of kFirstPoison
constexpr Bounds kSumBounds{.rtol = 1e-3, .atol = 1e-3};

std::optional<Comparison> compare_summands(const std::vector<float>& out, const std::vector<float>& ref,
                                           const std::vector<std::uint64_t>& shape) {
  return compare_sums(DType::F32, std::as_bytes(std::span(out)), std::as_bytes(std::span(ref)), shape,
                      kFirstPoison, kSumBounds);
}

TEST_CASE("a row may be the sum of as many summands as there are blocks") {
  const std::vector<float> ref{1, 2, 3, 4, 5, 6, 7, 8};
  const auto result =
      compare_summands({3, 7, kUnwritten, kUnwritten, 11, 15, kUnwritten, kUnwritten}, ref, {2, 4});
  REQUIRE(result);
  CHECK(result->passed());
  CHECK(result->elements == 2);
  CHECK_FALSE(result->same_bits);
}

TEST_CASE("the summands may lie along any axis") {
  const std::vector<float> ref{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<float> outermost{8,          10,         12,         14,         16,         18,
                                     kUnwritten, kUnwritten, kUnwritten, kUnwritten, kUnwritten, kUnwritten};
  const auto result = compare_summands(outermost, ref, {2, 3, 2});
  REQUIRE(result);
  CHECK(result->passed());
  const std::vector<float> middle{9,  12, kUnwritten, kUnwritten, kUnwritten, kUnwritten,
                                  27, 30, kUnwritten, kUnwritten, kUnwritten, kUnwritten};
  REQUIRE(compare_summands(middle, ref, {2, 3, 2}));
  CHECK(compare_summands(middle, ref, {2, 3, 2})->passed());
}

TEST_CASE("a wrong sum is counted and has the index of its line") {
  const std::vector<float> ref{1, 2, 3, 4, 5, 6, 7, 8};
  const auto result =
      compare_summands({3, 7, kUnwritten, kUnwritten, 11, 16, kUnwritten, kUnwritten}, ref, {2, 4});
  REQUIRE(result);
  CHECK(result->mismatches == 1);
  CHECK(result->worst_index == 4);
}

TEST_CASE("a sum may depart by as much as its summands allow") {
  const std::vector<float> ref{1000, -1000, 1000, -1000};
  const auto result = compare_summands({1, kUnwritten, 0, kUnwritten}, ref, {2, 2});
  REQUIRE(result);
  CHECK(result->passed());
  CHECK_FALSE(compare_summands({3, kUnwritten, 0, kUnwritten}, ref, {2, 2})->passed());
}

TEST_CASE("summands do not widen the tolerance beyond that of the reference's largest line") {
  const std::vector<float> ref{1, 2, 3, 4};
  CHECK_FALSE(compare_summands({1e30F, -1e30F, 1e30F, kUnwritten}, ref, {2, 2}).value().passed());
  const auto inflated = compare_summands({1e30F, -1e30F, kUnwritten, 7}, ref, {2, 2});
  REQUIRE(inflated);
  CHECK(inflated->mismatches == 1);
}

TEST_CASE("sums say nothing where both wrote the same elements") {
  CHECK_FALSE(compare_summands({2, 1, 4, 3}, {1, 2, 3, 4}, {2, 2}));
  CHECK_FALSE(compare_summands({2, kUnwritten, 4, kUnwritten}, {1, kUnwritten, 3, kUnwritten}, {2, 2}));
}

TEST_CASE("sums say nothing of a line that one side left alone or that is not finite") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK_FALSE(compare_summands({3, kUnwritten, kUnwritten, kUnwritten}, {1, 2, 3, 4}, {2, 2}));
  CHECK_FALSE(compare_summands({infinity, kUnwritten, 7, kUnwritten}, {infinity, 2, 3, 4}, {2, 2}));
}

TEST_CASE("sums say nothing of one line or of integers") {
  CHECK_FALSE(compare_summands({10, kUnwritten, kUnwritten, kUnwritten}, {1, 2, 3, 4}, {4}));
  CHECK_FALSE(compare_summands({10, kUnwritten, kUnwritten, kUnwritten}, {1, 2, 3, 4}, {1, 4}));
  const std::vector<std::int32_t> out{3, -1}, ref{1, 2};
  const std::vector<std::uint64_t> shape{1, 2};
  CHECK_FALSE(compare_sums(DType::I32, std::as_bytes(std::span(out)), std::as_bytes(std::span(ref)), shape,
                           kFirstPoison, kSumBounds));
}

}  // namespace
}  // namespace cubind::verify
