#include "client/cubindctl/answers/comparison_output.hpp"

#include <nlohmann/json.hpp>

#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/evidence_json.hpp"

namespace cubind::ctl {

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
