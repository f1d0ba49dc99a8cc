// The rules for comparisons with libraries, wherever they come from: a caller, a table or the store.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/facts/facts.hpp"

namespace cubind {

inline constexpr std::size_t kMaxLibraries = 8;  // of a record
inline constexpr std::size_t kMaxLibraryBytes = 64;
inline constexpr double kMaxGain = 1e6;

struct ComparisonFault {
  std::string_view member;  // its name in JSON
  std::string cause;
};

/// The first rule that it breaks: the library is 1 to kMaxLibraryBytes characters of printable ASCII, gains
/// are above 0 and at most kMaxGain, gain_low <= gain <= gain_high, there are samples. Absent: it keeps all.
std::optional<ComparisonFault> fault_of(const LibraryComparison& comparison);

/// Throws Error(InvalidArgument) at "FIELD.gain" for the first.
void check_comparison(const LibraryComparison& comparison, std::string_view field);

/// Replaces the one with the same library. Above kMaxLibraries the oldest one makes room.
void put_comparison(std::vector<LibraryComparison>& comparisons, LibraryComparison comparison);

}  // namespace cubind
