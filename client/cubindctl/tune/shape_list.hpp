// A list of problems to tune. The end of the file's name decides its format:
//
//   shapes.json    {"kernel": "rmsnorm_forward",
//                   "problems": [{"N": 1024, "D": 8192, "T": "bf16"}, {"N": 4096, "D": 4096, "T": "bf16"}]}
//   shapes.jsonl   {"kernel": "rmsnorm_forward", "N": 1024, "D": 8192, "T": "bf16"}
//                  {"kernel": "softmax", "ROWS": 4096, "D": 4096}
//   shapes.csv     kernel,N,D,T
//                  rmsnorm_forward,1024,8192,bf16
//                  rmsnorm_forward,4096,4096,bf16
//
// Each problem may name its kernel ("kernel" in JSON, a column in CSV). One that does not is for the list's
// only kernel; where the list has several, each names its own. Dims are integers, types in any spelling of
// torch, NumPy and Triton, flags true or false; empty lines are skipped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/problem.hpp"

namespace cubind::ctl {

struct Shape {
  Problem problem;
  std::string where;  // for messages: "shapes.jsonl line 4"
};

struct KernelShapes {
  std::string kernel;         // empty: the list names none
  std::vector<Shape> shapes;  // at least one; all with the same names; no two alike
};

/// The shapes by kernel, in the order in which the list first names them; at least one. Throws
/// Error(InvalidArgument) at "shapes.json /problems/3/D", "shapes.jsonl line 4 /D" or "shapes.csv line 4,
/// column 2 (D)".
using ShapeList = std::vector<KernelShapes>;
ShapeList read_shape_list(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
