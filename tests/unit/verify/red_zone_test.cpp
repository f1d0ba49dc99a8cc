#include "tests/support/host_verification.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

namespace cubind::verify {
namespace {

std::vector<std::byte> painted(Zone zone, std::size_t bytes = kRedZoneBytes) {
  std::vector<std::byte> paint(bytes);
  paint_red_zone(paint, zone);
  return paint;
}

TEST_CASE("an untouched red zone has no damage") {
  const Zone zone = GENERATE(Zone{0, ZoneSide::Front}, Zone{0, ZoneSide::Back}, Zone{7, ZoneSide::Back});
  CHECK(check_red_zone(painted(zone), zone) == std::nullopt);
}

TEST_CASE("one changed byte is found with its place") {
  const Zone zone{3, ZoneSide::Back};
  std::vector<std::byte> bytes = painted(zone);
  const std::size_t at = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{12345}, kRedZoneBytes - 1);
  bytes[at] ^= std::byte{1};
  CHECK(check_red_zone(bytes, zone) == ZoneDamage{at, 1});
}

TEST_CASE("the paint is NaN for a reader of floating point") {
  const DType type = GENERATE(DType::F64, DType::F32, DType::F16, DType::Bf16);
  const std::vector<std::byte> bytes = painted({5, ZoneSide::Back});
  for (std::size_t i = 0; i < bytes.size() / size_of(type); ++i) {
    REQUIRE(std::isnan(element_as_double(type, bytes, i)));
  }
}

TEST_CASE("the paint of one buffer copied to another is damage in every word") {
  const auto other = GENERATE(1U, 2U, 9U, 13U, 119U);
  const std::vector<std::byte> copied = painted({0, ZoneSide::Back});
  const std::vector<std::byte> own = painted({other, ZoneSide::Back});
  for (std::size_t i = 0; i < own.size(); i += 2) {
    REQUIRE(std::memcmp(&copied[i], &own[i], 2) != 0);
  }
}

TEST_CASE("damage is described by its distance from the buffer") {
  CHECK(describe({0, 2}, {0, ZoneSide::Back}, "y") ==
        "y: 2 bytes were written behind the buffer, the first one 0 bytes past its end");
  CHECK(describe({kRedZoneBytes - 4, 4}, {0, ZoneSide::Front}, "y") ==
        "y: 4 bytes were written before the buffer, the first one 4 bytes before its start");
}

}  // namespace
}  // namespace cubind::verify
