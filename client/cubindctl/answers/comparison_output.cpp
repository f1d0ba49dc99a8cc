#include "client/cubindctl/answers/comparison_output.hpp"

#include <nlohmann/json.hpp>

#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/facts/fact_json.hpp"

namespace cubind::ctl {

std::optional<double> over_default(const Timing& timing) {
  return timing.gain_over_default() > 0 ? std::optional(timing.gain_over_default()) : std::nullopt;
}

std::string over_library(const LibraryComparison& comparison) {
  return fixed(comparison.gain(), 2) + " x (" + fixed(comparison.gain_low(), 2) + " to " +
         fixed(comparison.gain_high(), 2) + "), " + comparison.library() + ", reported";
}

OutputJson json_of(const std::vector<LibraryComparison>& comparisons) {
  OutputJson list = OutputJson::array();
  for (const LibraryComparison& comparison : comparisons) {
    list.push_back(to_json(comparison));
  }
  return list;
}

}  // namespace cubind::ctl
