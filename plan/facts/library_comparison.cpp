#include "plan/facts/library_comparison.hpp"

#include <algorithm>
#include <utility>

#include "base/refuse.hpp"

namespace cubind {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLibraryBytes &&
         std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

std::optional<ComparisonFault> fault_of(const LibraryComparison& comparison) {
  if (!is_name(comparison.library())) {
    return ComparisonFault{"library", "expected a name and version in 1 to " +
                                          std::to_string(kMaxLibraryBytes) +
                                          " characters of printable ASCII, such as torch 2.13.0+cu130"};
  }
  // Written so that NaN is refused too.
  if (!(comparison.gain_low() > 0 && comparison.gain_high() <= kMaxGain)) {
    return ComparisonFault{comparison.gain_low() > 0 ? "gain_high" : "gain_low",
                           "a gain is a number above 0 and at most 1e6"};
  }
  if (!(comparison.gain_low() <= comparison.gain() && comparison.gain() <= comparison.gain_high())) {
    return ComparisonFault{"gain", "is not between gain_low and gain_high"};
  }
  if (comparison.samples() == 0) {
    return ComparisonFault{"samples", "is 0: a comparison has at least one round"};
  }
  return std::nullopt;
}

void check_comparison(const LibraryComparison& comparison, std::string_view field) {
  if (const auto fault = fault_of(comparison)) {
    refuse(std::string(field) + "." + std::string(fault->member), fault->cause);
  }
}

void put_comparison(std::vector<LibraryComparison>& comparisons, LibraryComparison comparison) {
  std::erase_if(comparisons, [&](const auto& known) { return known.library() == comparison.library(); });
  if (comparisons.size() >= kMaxLibraries) {
    comparisons.erase(comparisons.begin());
  }
  comparisons.push_back(std::move(comparison));
}

}  // namespace cubind
