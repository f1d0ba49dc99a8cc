#include "client/cubindctl/percentage.hpp"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind::ctl {

double parse_percentage(const std::string& text, const std::string& option) {
  std::string_view number = text;
  if (number.ends_with('%')) {
    number.remove_suffix(1);
  }
  number = number.substr(0, number.find_last_not_of(' ') + 1);
  double value = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (fault != std::errc() || end != number.data() + number.size() || !std::isfinite(value) || value < 0) {
    throw Error(ErrorCode::InvalidArgument, option, quoted(text) + " is not a percentage, such as 2%");
  }
  return value;
}

}  // namespace cubind::ctl
