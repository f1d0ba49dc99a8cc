#include "plan/facts/library_comparison.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.hpp"
#include "tests/support/facts.hpp"

namespace cubind::test {
namespace {

LibraryComparison torch(const std::string& version = "2.13.0") {
  return gain_over("torch " + version, 1.31, 1.29, 1.33, 40);
}

std::string fault(const LibraryComparison& comparison) {
  const auto found = fault_of(comparison);
  return found ? std::string(found->member) : "";
}

TEST_CASE("a comparison names its library in at most 64 characters of printable ASCII") {
  LibraryComparison comparison = torch();
  CHECK(fault(comparison).empty());
  comparison.set_library(std::string(64, 'x'));
  CHECK(fault(comparison).empty());
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("torch\n"), std::string("törch")}) {
    comparison.set_library(name);
    CHECK(fault(comparison) == "library");
  }
}

TEST_CASE("the gain of a comparison is finite and positive and within its interval") {
  const double infinite = HUGE_VAL, none = std::nan("");
  CHECK(fault(gain_over("torch", 1, 0, 2, 1)) == "gain_low");
  CHECK(fault(gain_over("torch", 1, none, 2, 1)) == "gain_low");
  CHECK(fault(gain_over("torch", 1, 1, infinite, 1)) == "gain_high");
  CHECK(fault(gain_over("torch", 1, 1, none, 1)) == "gain_high");
  CHECK(fault(gain_over("torch", 3, 1, 2, 1)) == "gain");
  CHECK(fault(gain_over("torch", none, 1, 2, 1)) == "gain");
  CHECK(fault(gain_over("torch", 1, 1, 1, 0)) == "samples");
  CHECK(fault(gain_over("torch", 1, 1, 1, 1)).empty());
}

TEST_CASE("a record has one comparison for each library and the oldest makes room") {
  std::vector<LibraryComparison> known;
  for (int version = 1; version <= 8; ++version) {
    put_comparison(known, torch(std::to_string(version)));
  }
  put_comparison(known, torch("1"));
  CHECK(known.size() == 8);
  CHECK(known.back().library() == "torch 1");
  put_comparison(known, torch("9"));
  CHECK(known.size() == 8);
  CHECK(known.front().library() == "torch 3");
}

TEST_CASE("a comparison that breaks a rule is refused at its field") {
  CHECK_NOTHROW(check_comparison(torch(), "comparison"));
  CHECK_THROWS_WITH(check_comparison(gain_over("torch", 2, 1, 1.5, 1), "comparison"),
                    Catch::Contains("comparison.gain: is not between gain_low and gain_high"));
}

}  // namespace
}  // namespace cubind::test
