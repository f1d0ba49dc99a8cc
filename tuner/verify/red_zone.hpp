// Red zones: painted bytes right before and right after every buffer. A kernel that writes outside its buffer
// changes them, and a kernel that reads outside computes with NaN.
//
// The paint is made of 16-bit words that are NaN in f16, bf16, f32 and f64 (and in e4m3 and e5m2 every other
// byte). It differs from place to place, and between any two buffers at the same place: a copy kernel that
// reads past the end of one buffer and writes what it got past the end of another is caught too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cubind::verify {

/// The bytes on each side. More than the longest row of most problems, so that a row too many stays inside
/// the allocation.
inline constexpr std::size_t kRedZoneBytes = std::size_t{64} << 10;

enum class ZoneSide : std::uint32_t { Front = 0, Back = 1 };

/// Identifies a zone: `buffer` is the buffer's number within its problem, below 126.
struct Zone {
  std::uint32_t buffer = 0;
  ZoneSide side = ZoneSide::Back;
};

struct ZoneDamage {
  std::uint64_t first_offset = 0;  // offset of the first changed byte from the zone's first byte
  std::uint64_t bytes = 0;         // the number of changed bytes
  bool operator==(const ZoneDamage&) const = default;
};

/// "y: 2 bytes were written behind the buffer, the first one 0 bytes past its end".
std::string describe(const ZoneDamage& damage, Zone zone, const std::string& buffer_name);

/// Outputs are filled with these bytes before a run, so that an element that was not written stands out. 0xff
/// is NaN in every floating-point type, but -1 as an integer; so a second run starts from another poison.
inline constexpr std::byte kFirstPoison{0xff};
inline constexpr std::byte kSecondPoison{0x7f};

}  // namespace cubind::verify
