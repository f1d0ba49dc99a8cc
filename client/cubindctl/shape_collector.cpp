#include "client/cubindctl/shape_collector.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kMaxProblems = 1000;  // of one call

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

void ShapeCollector::fail(const std::string& place, std::string cause) const {
  throw Error(ErrorCode::InvalidArgument, place.empty() ? file_ : file_ + " " + place, std::move(cause));
}

void ShapeCollector::set_kernel(const std::string& name, const std::string& place) {
  if (name.empty()) {
    fail(place, "must not be empty");
  }
  if (list_.kernel && *list_.kernel != name) {
    fail(place, "is for " + quoted(name) + ", " + kernel_place_ + " is for " + quoted(*list_.kernel) +
                    ": a list is for one kernel");
  }
  if (!list_.kernel) {
    list_.kernel = name;
    kernel_place_ = place;
  }
}

void ShapeCollector::add(Problem problem, const std::string& place) {
  if (list_.problems.size() == kMaxProblems) {
    fail(place,
         "is one too many: at most " + std::to_string(kMaxProblems) + " problems are tuned in one call");
  }
  if (problem.dims.empty()) {
    fail(place, "a problem has at least one dim, as in {\"N\": 4096, \"T\": \"bf16\"}");
  }
  if (list_.problems.empty()) {
    first_place_ = place;
  } else if (dim_and_type_names(problem) != dim_and_type_names(list_.problems.front())) {
    fail(place, "has the names " + join(dim_and_type_names(problem), ", ") + ", " + first_place_ + " has " +
                    join(dim_and_type_names(list_.problems.front()), ", "));
  }
  const auto [same, added] = places_.try_emplace(sorted_text(problem), place);
  if (!added) {
    fail(place, "is the same as " + same->second);
  }
  list_.problems.push_back(std::move(problem));
}

ShapeList ShapeCollector::finish(const std::string& place) {
  if (list_.problems.empty()) {
    fail(place, "must not be empty");
  }
  return std::move(list_);
}

}  // namespace cubind::ctl
