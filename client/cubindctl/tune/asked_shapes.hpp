// The problems that a command line asks about.
#pragma once

#include <string>
#include <vector>

#include "client/cubindctl/tune/shape_list.hpp"

namespace cubind::ctl {

struct AskedShapes {
  std::string command;                // for messages
  std::string kernel;                 // empty: the shape list names it
  std::string shapes;                 // file; empty: none
  std::vector<std::string> problems;  // of --problem
  std::string otherwise = {};         // what may be given instead: " or --wanted"
};

/// At least one kernel, each with its name. Throws Error(InvalidArgument) where neither a list nor a problem
/// is given, at the file's place for a fault of the list, and where a kernel has no name or two.
ShapeList asked_shapes(const AskedShapes& asked);

}  // namespace cubind::ctl
