#include "client/cubindctl/tune/asked_shapes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace cubind::ctl {
namespace {

// The list's kernels; the command line's where the list names none.
void name_kernels(const AskedShapes& asked, ShapeList& list) {
  for (KernelShapes& group : list) {
    if (group.kernel.empty()) {
      group.kernel = asked.kernel;
    }
    if (group.kernel.empty()) {
      throw Error(
          ErrorCode::InvalidArgument, "kernel",
          "name it: `cubindctl " + asked.command + " KERNEL ...`, or put \"kernel\" into the shape list");
    }
    if (!asked.kernel.empty() && group.kernel != asked.kernel) {
      throw Error(ErrorCode::InvalidArgument, group.shapes.front().where,
                  "is for " + quoted(group.kernel) + ", not for " + quoted(asked.kernel));
    }
  }
}

}  // namespace

ShapeList asked_shapes(const AskedShapes& asked) {
  if (asked.shapes.empty() && asked.problems.empty()) {
    throw Error(ErrorCode::InvalidArgument, "problems",
                "give --shapes FILE, --problem N=4096,T=bf16" + asked.otherwise);
  }
  ShapeList list;
  if (!asked.shapes.empty()) {
    list = read_shape_list(read_file(asked.shapes), asked.shapes);
  }
  if (asked.problems.empty()) {
    name_kernels(asked, list);
    return list;
  }
  if (list.size() > 1 && asked.kernel.empty()) {
    throw Error(ErrorCode::InvalidArgument, "--problem",
                "the shape list is for several kernels (" + list[0].kernel + ", " + list[1].kernel +
                    "): give these problems in a call of their own");
  }
  list.resize(std::max<std::size_t>(list.size(), 1));
  for (const std::string& problem : asked.problems) {
    list.front().shapes.push_back({parse_problem(problem), "--problem " + problem});
  }
  name_kernels(asked, list);
  return list;
}

}  // namespace cubind::ctl
