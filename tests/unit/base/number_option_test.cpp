#include "base/number_option.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// The digits that it becomes, or what is wrong.
std::string read(const NumberOption& option, std::string text) {
  const std::string fault = option.read(text);
  return fault.empty() ? text : fault;
}

TEST_CASE("the number of an option becomes plain digits in its smallest unit") {
  CHECK(read(whole_number(1, 1024), "1024") == "1024");
  CHECK(read(number_of_bytes(), "4096") == "4096");
  for (const char* text : {"8GiB", "8GB", "8g", "8 gib", "8589934592b"}) {
    CHECK(read(number_of_bytes(), text) == "8589934592");
  }
  CHECK(read(number_of_bytes(), "1EiB") == "1152921504606846976");
  CHECK(read(duration(), "90") == "90000");
  CHECK(read(duration(), "1.5h") == "5400000");
  CHECK(read(share(), "0.5") == "0.5");
}

TEST_CASE("what is no number of an option's range is refused with the range") {
  for (const char* text :
       {"", "x", "-1", "+1", "0", "1025", "1.5", "0x10", "1k", "99999999999999999999", "nan"}) {
    CHECK_THAT(read(whole_number(1, 1024), text), Contains("is not a whole number from 1 to 1024"));
  }
  for (const char* text : {"", "many", "-1", "-5GiB", "1.5GiB", "8GiBs", "2EiB", "1152921504606846977",
                           "1000000000000000000000000000000", "nan", "inf"}) {
    CHECK_THAT(read(number_of_bytes(), text), Contains("is not a size from 0 to 1EiB"));
  }
  for (const char* text : {"", "soon", "0s", "-1m", "nan", "inf", "1e300h", "10001h", "1d"}) {
    CHECK_THAT(read(duration(), text), Contains("is not a time from 0.001s to 10000h"));
  }
  for (const char* text : {"", "x", "0", "-0.5", "1.001", "7", "nan", "-nan", "inf", "0.5x"}) {
    CHECK_THAT(read(share(), text), Contains("is not a number from 0.000001 to 1"));
  }
  CHECK(read(number(0.001, 1e6), "nan") == "\"nan\" is not a number from 0.001 to 1000000");
}

}  // namespace
}  // namespace cubind::test
