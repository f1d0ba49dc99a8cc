// A list of problems to tune. The end of the file's name decides its format:
//
//   shapes.json    {"kernel": "rmsnorm_forward",
//                   "problems": [{"N": 1024, "D": 8192, "T": "bf16"}, {"N": 4096, "D": 4096, "T": "bf16"}]}
//   shapes.jsonl   {"kernel": "rmsnorm_forward", "N": 1024, "D": 8192, "T": "bf16"}
//                  {"N": 4096, "D": 4096, "T": "bf16"}
//   shapes.csv     kernel,N,D,T
//                  rmsnorm_forward,1024,8192,bf16
//                  rmsnorm_forward,4096,4096,bf16
//
// The kernel is optional in each. Dims are integers, types in any spelling of torch, NumPy and Triton, flags
// true or false; empty lines are skipped.
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

/// Throws Error(InvalidArgument) at "shapes.json /problems/3/D", "shapes.jsonl line 4 /D" or "shapes.csv line
/// 4, column 2 (D)".
ShapeList read_shape_list(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
