#pragma once

#include <string>
#include <string_view>

#include "plan/problem.hpp"

namespace cubind {

/// The text with `{T}` as the CUDA name of the problem's type and `{NAME}` as the value of the tunable, dim
/// or flag. Names were checked when the spec was parsed.
std::string substitute(std::string_view text, const Problem& problem, const Configuration& configuration);

/// What is compiled for the launches: their entries in order, then each variable that has the content of one
/// of their arguments, as "&filter<float>".
std::vector<std::string> name_expressions(const KernelSpec& spec, const std::vector<LaunchSpec>& launches,
                                          const Problem& problem, const Configuration& configuration);

}  // namespace cubind
