#pragma once

#include <string>
#include <vector>

#include "tuner/includes/toolkit_headers.hpp"

namespace cubind {

/// A header of cubind's own for a name that kernels include and NVRTC lacks: of the C and C++ standard
/// libraries what device code uses, for names that serve host code alone an empty text. The toolkit's own
/// cuda_runtime.h and its kind declare under NVRTC what the compiler has predefined, include what some wheels
/// lack, and are 2 MB: they have stand-ins too, which go before them. The texts lie in stand_ins/, the empty
/// ones are listed in the source. Null: there is none.
const ToolkitHeader* find_stand_in(const std::string& name);

/// The names, sorted.
std::vector<std::string> stand_in_names();

}  // namespace cubind
