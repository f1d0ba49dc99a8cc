#include "client/cubindctl/tune/shape_collector.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

// The names of dims and types, sorted: problems of one kernel have the same.
std::vector<std::string> dim_and_type_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const NamedValue& dim : problem.dims) {
    names.push_back(dim.name);
  }
  for (const TypeBinding& type : problem.types) {
    names.push_back(type.name);
  }
  std::ranges::sort(names);
  return names;
}

std::string sorted_text(const Problem& problem) {
  std::vector<std::string> parts{problem.scenario};
  for (const NamedValue& dim : problem.dims) {
    parts.push_back(dim.name + "=" + std::to_string(dim.value));
  }
  for (const TypeBinding& type : problem.types) {
    parts.push_back(type.name + "=" + std::string(to_string(type.type)));
  }
  std::ranges::sort(parts);
  return join(parts, ",");
}

}  // namespace

void ShapeCollector::fail(const std::string& where, std::string cause) const {
  throw Error(ErrorCode::InvalidArgument, where.empty() ? file_ : file_ + " " + where, std::move(cause));
}

void ShapeCollector::add(Problem problem, const std::string& kernel, const std::string& where) {
  if (given_.size() == static_cast<std::size_t>(kMaxProblems)) {
    fail(where,
         "is one too many: at most " + std::to_string(kMaxProblems) + " problems are tuned in one call");
  }
  if (problem.dims.empty()) {
    fail(where, "a problem has at least one dim, as in {\"N\": 4096, \"T\": \"bf16\"}");
  }
  given_.push_back({std::move(problem), kernel, where});
}

const std::string& ShapeCollector::only_kernel() const {
  const auto is_named = [](const Given& given) { return !given.kernel.empty(); };
  const auto first = std::ranges::find_if(given_, is_named);
  if (first == given_.end()) {
    return given_.front().kernel;
  }
  const auto unnamed = std::ranges::find_if_not(given_, is_named);
  const auto other = std::ranges::find_if(
      given_, [&](const Given& given) { return is_named(given) && given.kernel != first->kernel; });
  if (other != given_.end() && unnamed != given_.end()) {
    fail(unnamed->where, "names no kernel: in a list for several (" + first->kernel + ", " + other->kernel +
                             "), each problem names its own");
  }
  return first->kernel;
}

void ShapeCollector::check(const Given& given, const KernelShapes& group, Seen& seen) const {
  if (group.shapes.empty()) {
    seen.first_where = given.where;
  } else if (const Problem& first = group.shapes.front().problem;
             dim_and_type_names(given.problem) != dim_and_type_names(first)) {
    fail(given.where, "has the names " + join(dim_and_type_names(given.problem), ", ") + ", " +
                          seen.first_where + " has " + join(dim_and_type_names(first), ", "));
  }
  const auto [same, added] = seen.locations.try_emplace(sorted_text(given.problem), given.where);
  if (!added) {
    fail(given.where, "is the same as " + same->second);
  }
}

ShapeList ShapeCollector::finish(const std::string& where) {
  if (given_.empty()) {
    fail(where, "must not be empty");
  }
  const std::string only = only_kernel();
  ShapeList list;
  std::map<std::string, Seen> seen;
  for (const Given& given : given_) {
    const std::string& kernel = given.kernel.empty() ? only : given.kernel;
    auto group = std::ranges::find(list, kernel, &KernelShapes::kernel);
    if (group == list.end()) {
      group = list.insert(list.end(), {kernel, {}});
    }
    check(given, *group, seen[kernel]);
    group->shapes.push_back({given.problem, file_ + " " + given.where});
  }
  return list;
}

}  // namespace cubind::ctl
