#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {

std::string describe(const ZoneDamage& damage, Zone zone, const std::string& buffer_name) {
  const bool back = zone.side == ZoneSide::Back;
  const std::uint64_t distance = back ? damage.first_offset : kRedZoneBytes - damage.first_offset;
  return buffer_name + ": " + std::to_string(damage.bytes) + " bytes were written " +
         (back ? "behind" : "before") + " the buffer, the first one " + std::to_string(distance) +
         (back ? " bytes past its end" : " bytes before its start");
}

}  // namespace cubind::verify
