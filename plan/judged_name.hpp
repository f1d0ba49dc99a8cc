// The kernel of a verdict has a name of its own, and is gone when the verdict is made.
#pragma once

#include <string_view>

namespace cubind {

inline constexpr std::string_view kJudgedPrefix = "judged_";

inline bool is_judged(std::string_view kernel) { return kernel.starts_with(kJudgedPrefix); }

}  // namespace cubind
