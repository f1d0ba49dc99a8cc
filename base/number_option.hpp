// The numbers that options take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cubind {

/// Reads the numbers of one option: what CLI11 takes for a validator.
struct NumberOption {
  std::string range;  // "a whole number from 1 to 1024"
  /// Puts the number into `text` as plain digits. Returns what is wrong with it, and the range; empty if
  /// nothing is.
  std::function<std::string(std::string& text)> read;
};

NumberOption whole_number(std::uint64_t least, std::uint64_t most);
/// "4096", "8GiB", also "8GB", "8g" and "8 gib" for the same. The number is that of the bytes.
NumberOption number_of_bytes();
/// "90", "90s", "10m", "1.5h". The number is that of the milliseconds.
NumberOption duration();
/// "0.9".
NumberOption number(double least, double most);
NumberOption share();

/// Compile workers of an agent. The daemon passes the option on.
NumberOption number_of_compile_jobs();

}  // namespace cubind
