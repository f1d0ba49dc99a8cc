#include "plan/narrow_float.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace cubind {

TEST_CASE("numbers that a narrow type holds keep their bits") {
  CHECK(encode_narrow(DType::F16, 1.0) == 0x3c00);
  CHECK(encode_narrow(DType::F16, -2.0) == 0xc000);
  CHECK(encode_narrow(DType::F16, 65504.0) == 0x7bff);
  CHECK(encode_narrow(DType::F16, 0x1p-24) == 0x0001);
  CHECK(encode_narrow(DType::Bf16, 1.0) == 0x3f80);
  CHECK(encode_narrow(DType::E4m3, 448.0) == 0x7e);
  CHECK(encode_narrow(DType::E5m2, 57344.0) == 0x7b);
  CHECK(encode_narrow(DType::F16, -0.0) == 0x8000);
}

TEST_CASE("every narrow bit pattern survives being read and written") {
  const DType type = GENERATE(DType::F16, DType::Bf16, DType::E4m3, DType::E5m2);
  const unsigned patterns = size_of(type) == 2 ? 65536 : 256;
  for (unsigned bits = 0; bits < patterns; ++bits) {
    const double value = decode_narrow(type, static_cast<std::uint16_t>(bits));
    REQUIRE((std::isnan(value) || encode_narrow(type, value) == bits));
  }
}

TEST_CASE("halves round to even also when they carry into the exponent") {
  CHECK(encode_narrow(DType::Bf16, 1.0 + 0x1p-8) == 0x3f80);
  CHECK(encode_narrow(DType::Bf16, 1.0 + 3 * 0x1p-8) == 0x3f82);
  CHECK(encode_narrow(DType::F16, 2047.5) == 0x6800);  // 2048
  CHECK(encode_narrow(DType::F16, 0x1p-25) == 0);
}

TEST_CASE("beyond the largest finite number comes infinity and for e4m3 NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(encode_narrow(DType::F16, 65520.0) == 0x7c00);
  CHECK(encode_narrow(DType::Bf16, -infinity) == 0xff80);
  CHECK(encode_narrow(DType::E4m3, 480.0) == 0x7f);
  CHECK(encode_narrow(DType::E5m2, 1e300) == 0x7c);
  CHECK(encode_narrow(DType::F16, std::numeric_limits<double>::quiet_NaN()) == 0x7e00);
}

}  // namespace cubind
