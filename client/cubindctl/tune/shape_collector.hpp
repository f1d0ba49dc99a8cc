// The common rules of shape lists in every format.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/cubindctl/tune/shape_list.hpp"

namespace cubind::ctl {

/// Places are within the file: "/problems/3", "line 4". Each call throws Error(InvalidArgument) at "FILE
/// PLACE".
class ShapeCollector {
 public:
  explicit ShapeCollector(std::string file) : file_(std::move(file)) {}

  /// At most 1000 problems, each with a dim. `kernel`: empty: the problem names none.
  void add(Problem problem, const std::string& kernel, const std::string& where);
  /// At least one problem, else the error is at `where`. The problems of a kernel have the names of its
  /// first, and none comes twice.
  ShapeList finish(const std::string& where);

  [[noreturn]] void fail(const std::string& where, std::string cause) const;

 private:
  struct Given {
    Problem problem;
    std::string kernel, where;
  };
  struct Seen {
    std::string first_where;
    std::map<std::string, std::string> locations;  // of its problems, by their text in sorted order
  };

  const std::string& only_kernel() const;
  void check(const Given& given, const KernelShapes& group, Seen& seen) const;

  std::string file_;
  std::vector<Given> given_;
};

}  // namespace cubind::ctl
