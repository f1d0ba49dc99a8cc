#include "tuner/search/fitting_problem.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

KernelSpec kernel(const BucketRule& of_n, const BucketRule& of_m = {}) {
  KernelSpec spec;
  spec.name = "rows";
  spec.dims = {{"N", "", 1, of_n, false}, {"D", "", 1, {}, false}, {"M", "", 1, of_m, false}};
  return spec;
}

const BucketRule kTwoEdges{BucketRule::Kind::Edges, {1024, 4096}};

Problem problem(std::int64_t n, std::int64_t m = 7) { return {{{"N", n}, {"D", 64}, {"M", m}}, {}, {}, ""}; }

// What is asked for, in order, until one has at most `most` elements.
std::vector<Problem> asked(const KernelSpec& spec, const Problem& from, std::int64_t most) {
  std::vector<Problem> result;
  fitting_problem(spec, from, [&](const Problem& one) {
    result.push_back(one);
    return *one.dim("N") * *one.dim("M") <= most;
  });
  return result;
}

TEST_CASE(
    "a problem that does not fit is replaced by the first that does as its bucket's interval is halved") {
  const auto fits = [](const Problem& one) { return *one.dim("N") <= 1800; };
  CHECK(fitting_problem(kernel(kTwoEdges), problem(4096), fits) == problem(1792));
}

TEST_CASE("the smallest problem of the bucket is asked last and none below it") {
  const auto all = asked(kernel(kTwoEdges), problem(4096), 0);
  REQUIRE(all.size() == 11);
  CHECK(all.front() == problem(2560));
  CHECK(all.back() == problem(1025));
}

TEST_CASE("no problem fits where not even the smallest of the bucket does") {
  const auto none = [](const Problem&) { return false; };
  CHECK_FALSE(fitting_problem(kernel(kTwoEdges), problem(4096), none));
}

TEST_CASE("a problem without a bucket is replaced by none") {
  CHECK(asked(kernel({}), problem(4096), 0).empty());
  CHECK(asked(kernel(kTwoEdges), problem(5000), 0).empty());  // above the last edge
}

TEST_CASE("several bucketed dims step down in turn in declared order") {
  const BucketRule pow2{BucketRule::Kind::Pow2, {}};
  const auto all = asked(kernel(kTwoEdges, pow2), problem(4096, 8), 1792 * 6);
  CHECK(all == std::vector<Problem>{problem(2560, 8), problem(2560, 6), problem(1792, 6)});
}

TEST_CASE("a problem that was put in another's place steps on as that one would") {
  const KernelSpec spec = kernel(kTwoEdges);
  CHECK(asked(spec, problem(2560), 1408 * 7) == std::vector<Problem>{problem(1792), problem(1408)});
}

}  // namespace
}  // namespace cubind
