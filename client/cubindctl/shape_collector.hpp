// The common rules of shape lists in every format.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/cubindctl/shape_list.hpp"

namespace cubind::ctl {

/// Places are within the file: "/problems/3", "line 4". Each call throws Error(InvalidArgument) at "FILE
/// PLACE".
class ShapeCollector {
 public:
  explicit ShapeCollector(std::string file) : file_(std::move(file)) {}

  /// Every kernel name must be the same: one call tunes one kernel.
  void set_kernel(const std::string& name, const std::string& place);
  /// At most 1000 problems, each with a dim, all with the names of the first, none twice.
  void add(Problem problem, const std::string& place);
  /// At least one problem; else the error is at `place`.
  ShapeList finish(const std::string& place);

  [[noreturn]] void fail(const std::string& place, std::string cause) const;

 private:
  std::string file_;
  ShapeList list_;
  std::string kernel_place_, first_place_;
  std::map<std::string, std::string> places_;  // of the problems, by their text in sorted order
};

}  // namespace cubind::ctl
