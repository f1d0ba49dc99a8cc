#include "tuner/search/tails.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

KernelSpec kernel(BucketRule rule, const std::string& grid) {
  KernelSpec spec;
  spec.name = "rows";
  spec.dims = {{"N", "", 1, std::move(rule), false}, {"D", "", 1, {}, false}};
  spec.tunables = {{"ROWS", {1, 2, 4}}, {"TILE", {1, 3}}};
  spec.launches = {{"rows<{ROWS}>", {}, {grid}, {"32"}, "0"}};
  return spec;
}

const BucketRule kEdges{BucketRule::Kind::Edges, {1024, 4096}};

Problem rows(std::int64_t n) { return {{{"N", n}, {"D", 64}}, {}, {}, ""}; }
Configuration configuration(std::int64_t per_block, std::int64_t tile) {
  return {{{"ROWS", per_block}, {"TILE", tile}}};
}
bool any(const Problem&) { return true; }

std::vector<std::int64_t> sizes(const std::vector<Problem>& problems) {
  std::vector<std::int64_t> result;
  for (const Problem& problem : problems) {
    result.push_back(*problem.dim("N"));
  }
  return result;
}

TEST_CASE("tails are the lower edge plus one and a prime inside and a size that no grid tunable divides") {
  const KernelSpec spec = kernel(kEdges, "cdiv(N, ROWS * TILE)");
  // 4095 = 3 * 1365, and 4094 is divided by neither 4 nor 3.
  CHECK(sizes(tail_problems(spec, rows(4096), configuration(4, 3), any)) ==
        std::vector<std::int64_t>{1025, 2053, 4094});
}

TEST_CASE("a dim without a bucket has no tails") {
  CHECK(tail_problems(kernel({}, "cdiv(N, ROWS)"), rows(4096), configuration(4, 3), any).empty());
}

TEST_CASE("tunables that do not occur with the dim in a grid expression do not count") {
  const KernelSpec spec = kernel(kEdges, "N");
  CHECK(sizes(tail_problems(spec, rows(4096), configuration(4, 3), any)) ==
        std::vector<std::int64_t>{1025, 2053});
}

TEST_CASE("a size that the configuration cannot serve is replaced by the next one that it can") {
  const auto even = [](const Problem& problem) { return *problem.dim("N") % 2 == 0; };
  const auto tails = sizes(tail_problems(kernel(kEdges, "N"), rows(4096), configuration(1, 1), even));
  CHECK(tails == std::vector<std::int64_t>{1026});
}

TEST_CASE("the measured problem is not its own tail") {
  const auto tails = sizes(tail_problems(kernel(kEdges, "N"), rows(1025), configuration(1, 1), any));
  CHECK(tails == std::vector<std::int64_t>{1026, 2053});
}

TEST_CASE("primes are distinguished from their neighbours") {
  CHECK(is_prime(2));
  CHECK(is_prime(65521));
  CHECK_FALSE(is_prime(1));
  CHECK_FALSE(is_prime(65521LL * 65521LL));
}

}  // namespace
}  // namespace cubind
