// A list of problems to tune:
//
//   {"kernel": "rmsnorm_forward",                          optional
//    "problems": [{"N": 1024, "D": 8192, "T": "bf16"}]}    dims are integers, types strings, flags true or
//    false
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/plan/problem.hpp"

namespace cubind::ctl {

struct ShapeList {
  std::optional<std::string> kernel;
  std::vector<Problem> problems;  // at least one; all with the same names; no two alike
};

/// Throws Error(InvalidArgument) at "FILE /json/pointer".
ShapeList read_shape_list(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
