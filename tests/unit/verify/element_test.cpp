#include "tuner/verify/element.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "plan/narrow_float.hpp"

namespace cubind::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double through(DType type, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(type, bytes, 0, value);
  return element_as_double(type, bytes, 0);
}

TEST_CASE("every narrow bit pattern survives being read and written") {
  const DType type = GENERATE(DType::F16, DType::Bf16, DType::E4m3, DType::E5m2);
  const unsigned patterns = size_of(type) == 2 ? 65536 : 256;
  for (unsigned bits = 0; bits < patterns; ++bits) {
    const double value = decode_narrow(type, static_cast<std::uint16_t>(bits));
    std::array<std::byte, 8> bytes{};
    store_element(type, bytes, 0, value);
    const unsigned again = std::to_integer<unsigned>(bytes[0]) | std::to_integer<unsigned>(bytes[1]) << 8;
    if (std::isnan(value)) {
      REQUIRE(std::isnan(element_as_double(type, bytes, 0)));
    } else {
      REQUIRE(again == bits);
    }
  }
}

TEST_CASE("the types have the values of their definitions") {
  CHECK(decode_narrow(DType::F16, 0x3c00) == 1.0);
  CHECK(decode_narrow(DType::F16, 0x0001) == std::ldexp(1.0, -24));
  CHECK(decode_narrow(DType::Bf16, 0x7f7f) == Approx(3.3895e38).epsilon(1e-4));
  CHECK(decode_narrow(DType::E4m3, 0x7e) == 448.0);
  CHECK(std::isnan(decode_narrow(DType::E4m3, 0x7f)));
  CHECK(decode_narrow(DType::E5m2, 0x7b) == 57344.0);
  CHECK(decode_narrow(DType::E5m2, 0xfc) == -kInfinity);
}

TEST_CASE("rounding is to nearest and to even at a tie") {
  CHECK(through(DType::Bf16, 1.0 + 1.0 / 256) == 1.0);         // tie: down to the even mantissa
  CHECK(through(DType::Bf16, 1.0 + 3.0 / 256) == 1.015625);    // tie: up to the even mantissa
  CHECK(through(DType::Bf16, 1.0 + 1.01 / 256) == 1.0078125);  // above the tie
  CHECK(through(DType::F16, 65519.0) == 65504.0);
}

TEST_CASE("what is too large becomes infinity or NaN where the type has none") {
  CHECK(through(DType::F16, 65520.0) == kInfinity);
  CHECK(through(DType::Bf16, 1e39) == kInfinity);
  CHECK(through(DType::E5m2, 1e6) == kInfinity);
  CHECK(std::isnan(through(DType::E4m3, 1000.0)));
}

TEST_CASE("integers saturate") {
  CHECK(through(DType::I8, 300) == 127);
  CHECK(through(DType::U8, -1) == 0);
  CHECK(through(DType::I32, 1e12) == 2147483647.0);
}

}  // namespace
}  // namespace cubind::verify
