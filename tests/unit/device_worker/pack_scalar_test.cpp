#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"
#include "tuner/worker/plan_launcher.hpp"

namespace cubind::worker {
namespace {

using Catch::Matchers::Contains;

v1::Parameter parameter(const std::string& type) {
  v1::Parameter made;
  made.set_name("n");
  made.set_type(type);
  return made;
}

template <typename T>
T unpacked(const std::array<std::byte, 8>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST_CASE("a scalar has the bytes of its type") {
  CHECK(unpacked<std::int64_t>(pack_scalar(parameter("i64"), std::int64_t{-5})) == -5);
  CHECK(unpacked<std::int32_t>(pack_scalar(parameter("i32"), std::int64_t{7})) == 7);
  CHECK(unpacked<float>(pack_scalar(parameter("f32"), 1e-6)) == 1e-6F);
  CHECK(unpacked<double>(pack_scalar(parameter("f64"), std::int64_t{3})) == 3.0);
  CHECK(unpacked<std::uint16_t>(pack_scalar(parameter("bf16"), 1.0)) == 0x3f80);
}

TEST_CASE("an integer that does not fit is refused by the parameter's name") {
  CHECK_THROWS_WITH(pack_scalar(parameter("i32"), std::int64_t{1} << 40),
                    Contains("parameter n: 1099511627776 does not fit"));
  CHECK_THROWS_WITH(pack_scalar(parameter("u8"), std::int64_t{-1}), Contains("does not fit u8"));
  CHECK_THROWS_WITH(pack_scalar(parameter("i32"), 0.5), Contains("is not a value of type i32"));
}

TEST_CASE("an unknown type is refused") { CHECK_THROWS_AS(pack_scalar(parameter("f12"), 1.0), Error); }

}  // namespace
}  // namespace cubind::worker
