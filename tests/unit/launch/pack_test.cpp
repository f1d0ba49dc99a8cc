#include "launch/pack.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"

namespace cubind {
namespace {

template <typename T>
T value_of(const ParameterBytes& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Parameter scalar_of(DType type) { return {"s", ParameterSource::Caller, type, Role::None, 0, 0, 0}; }

}  // namespace

TEST_CASE("a scalar is converted to the type of the parameter") {
  CHECK(value_of<double>(pack_scalar(scalar_of(DType::F64), 0.1)) == 0.1);
  CHECK(value_of<float>(pack_scalar(scalar_of(DType::F32), 0.1)) == 0.1f);
  CHECK(value_of<float>(pack_scalar(scalar_of(DType::F32), std::int64_t{3})) == 3.0f);
  CHECK(value_of<std::uint16_t>(pack_scalar(scalar_of(DType::Bf16), 1.0)) == 0x3f80);
  CHECK(value_of<std::int32_t>(pack_scalar(scalar_of(DType::I32), -7.0)) == -7);
  CHECK(value_of<std::uint8_t>(pack_scalar(scalar_of(DType::U8), std::int64_t{255})) == 255);
}

TEST_CASE("a scalar of the types of scalars alone has the bytes of its type") {
  CHECK(value_of<std::uint64_t>(pack_scalar(scalar_of(DType::U64), std::int64_t{1} << 62)) == 1ull << 62);
  CHECK(value_of<std::uint32_t>(pack_scalar(scalar_of(DType::U32), std::int64_t{4294967295})) == 4294967295u);
  CHECK(value_of<std::int16_t>(pack_scalar(scalar_of(DType::I16), -5.0)) == -5);
  CHECK(value_of<std::uint16_t>(pack_number(DType::U16, 65535)) == 65535);
  CHECK(value_of<std::uint8_t>(pack_number(DType::Bool, 1)) == 1);
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::U32), std::int64_t{-1}), "argument s: -1 does not fit u32");
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::U64), std::int64_t{-1}), "argument s: -1 does not fit u64");
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::I16), std::int64_t{40000}),
                    "argument s: 40000 does not fit i16");
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::Bool), std::int64_t{2}), Catch::Contains("neither 0 nor 1"));
}

TEST_CASE("a computed number is packed in the type of its parameter") {
  CHECK(value_of<std::int64_t>(pack_number(DType::I64, -7)) == -7);
  CHECK(value_of<std::int32_t>(pack_number(DType::I32, -7)) == -7);
  CHECK(value_of<float>(pack_number(DType::F32, 3)) == 3.0f);
  CHECK(value_of<std::uint16_t>(pack_number(DType::Bf16, 1)) == 0x3f80);
}

TEST_CASE("a scalar that an integer parameter cannot hold is refused") {
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::I32), std::int64_t{1} << 31),
                    "argument s: 2147483648 does not fit i32");
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::U8), std::int64_t{-1}), "argument s: -1 does not fit u8");
  CHECK_THROWS_WITH(pack_scalar(scalar_of(DType::I64), 0.5), Catch::Contains("is not an integer"));
  CHECK_THROWS_AS(pack_scalar(scalar_of(DType::I64), 0x1p63), Error);
}

}  // namespace cubind
