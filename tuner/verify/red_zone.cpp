#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {
namespace {

// This is the arithmetic of tuner/worker/device_kernels.cu; a test compares them byte by byte.
std::uint32_t zone_word(Zone zone, std::uint32_t word) {
  std::uint32_t hash = word * 0x9e3779b1U + static_cast<std::uint32_t>(zone.side) * 0x85ebca6bU;
  hash ^= hash >> 15;
  hash *= 0x2c1b3c6dU;
  hash ^= hash >> 12;
  // 5 has no factor in common with 126 or 14: two buffers differ in every word. A double is NaN by its top
  // word, which therefore starts at 0x7ff1; for all narrower types 0x7f81 is enough.
  const bool top_of_double = word % 4 == 3;
  const std::uint32_t choices = top_of_double ? 14U : 126U;
  return (top_of_double ? 0x7ff1U : 0x7f81U) + (hash % choices + zone.buffer * 5U) % choices;
}

}  // namespace

std::byte red_zone_byte(Zone zone, std::uint64_t offset) {
  const std::uint32_t word = zone_word(zone, static_cast<std::uint32_t>(offset / 2));
  return static_cast<std::byte>(offset % 2 == 0 ? word & 0xffU : word >> 8);
}

void paint_red_zone(std::span<std::byte> bytes, Zone zone) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = red_zone_byte(zone, i);
  }
}

std::optional<ZoneDamage> check_red_zone(std::span<const std::byte> bytes, Zone zone) {
  std::optional<ZoneDamage> damage;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == red_zone_byte(zone, i)) {
      continue;
    }
    if (!damage) {
      damage = ZoneDamage{i, 0};
    }
    ++damage->bytes;
  }
  return damage;
}

std::string describe(const ZoneDamage& damage, Zone zone, const std::string& buffer_name) {
  const bool back = zone.side == ZoneSide::Back;
  const std::uint64_t distance = back ? damage.first_offset : kRedZoneBytes - damage.first_offset;
  return buffer_name + ": " + std::to_string(damage.bytes) + " bytes were written " +
         (back ? "behind" : "before") + " the buffer, the first one " + std::to_string(distance) +
         (back ? " bytes past its end" : " bytes before its start");
}

}  // namespace cubind::verify
