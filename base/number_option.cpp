#include "base/number_option.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace cubind {
namespace {

template <typename Number>
using Units = std::map<std::string, Number>;  // in small letters; "": without one

/// The text's number, in the smallest of the units; absent: it is none, or not within the range.
template <typename Number>
std::optional<Number> number_in(std::string_view text, const Units<Number>& units, Number least,
                                Number most) {
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char c : trimmed(text.substr(static_cast<std::size_t>(end - text.data())))) {
    unit += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto factor = units.find(unit);
  // "nan" is read as a number, and is neither above nor below another.
  const bool is_within = failed == std::errc() && factor != units.end() && number <= most / factor->second &&
                         number * factor->second >= least;
  return is_within ? std::optional(number * factor->second) : std::nullopt;
}

/// `print` gives the option's text for a number, of which `text` is the given form.
template <typename Number, typename Print>
NumberOption option_of(std::string range, Units<Number> units, Number least, Number most, Print print) {
  return {range, [range, units = std::move(units), least, most, print](std::string& text) -> std::string {
            const auto number = number_in(text, units, least, most);
            if (!number) {
              return quoted(text) + " is not " + range;
            }
            text = print(*number, text);
            return "";
          }};
}

constexpr auto kAsDigits = [](std::uint64_t number, const std::string&) { return std::to_string(number); };

Units<std::uint64_t> units_of_bytes() {
  Units<std::uint64_t> units{{"", 1}, {"b", 1}};
  std::uint64_t factor = 1;
  for (const std::string prefix : {"k", "m", "g", "t", "p", "e"}) {
    factor <<= 10;
    for (const char* rest : {"", "b", "i", "ib"}) {
      units.emplace(prefix + rest, factor);
    }
  }
  return units;
}

}  // namespace

NumberOption whole_number(std::uint64_t least, std::uint64_t most) {
  return option_of("a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                   Units<std::uint64_t>{{"", 1}}, least, most, kAsDigits);
}

NumberOption number_of_bytes() {
  return option_of("a size from 0 to 1EiB, such as 8GiB", units_of_bytes(), std::uint64_t{0},
                   std::uint64_t{1} << 60, kAsDigits);
}

NumberOption duration() {
  constexpr double kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  return option_of("a time from 0.001s to 10000h, such as 90s or 10m",
                   Units<double>{{"", kSecond}, {"s", kSecond}, {"m", kMinute}, {"h", kHour}}, 1.0,
                   10'000 * kHour,
                   [](double number, const std::string&) { return std::to_string(std::llround(number)); });
}

NumberOption number(double least, double most) {
  const auto digits = [](double value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed).ptr;
    return std::string(text.begin(), end);
  };
  return option_of("a number from " + digits(least) + " to " + digits(most), Units<double>{{"", 1}}, least,
                   most, [](double, const std::string& text) { return text; });
}

NumberOption share() { return number(1e-6, 1); }

NumberOption number_of_compile_jobs() { return whole_number(1, 1024); }

}  // namespace cubind
