#include "plan/facts/value_check.hpp"

#include <cstdio>
#include <string>

#include "base/refuse.hpp"
#include "base/text.hpp"

namespace cubind {

void check_text(std::string_view text, std::string_view field, std::size_t max) {
  if (text.size() > max) {
    refuse(field, "has " + std::to_string(text.size()) + " bytes, the limit is " + std::to_string(max));
  }
  if (text.find_first_of("\t\r\n") != std::string_view::npos || printable(text) != text) {
    refuse(field, "holds a control or format character");
  }
}

void check_number(double value, double max, std::string_view field) {
  if (!(value >= 0 && value <= max)) {
    char text[96];
    std::snprintf(text, sizeof(text), "%g is not a number between 0 and %g", value, max);
    refuse(field, text);
  }
}

void check_duration(double time_us, std::string_view field) {
  check_number(time_us, kMaxTimeUs, field);
  if (time_us < kLeastTimeUs) {
    char text[96];
    std::snprintf(text, sizeof(text), "%g us is below %g us: no launch is that short", time_us, kLeastTimeUs);
    refuse(field, text);
  }
}

}  // namespace cubind
