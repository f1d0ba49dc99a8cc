#include "server/convert/problem_check.hpp"

#include <algorithm>
#include <vector>

#include "base/names_of.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

/// Each name is known and comes once, in the lists of one request so far.
void check_name_of(const std::string& name, const std::vector<std::string>& known,
                   std::vector<std::string>& seen, const std::string& kernel, const char* kind,
                   const std::string& field) {
  if (std::ranges::find(known, name) == known.end()) {
    cubind::refuse(field, quoted(name) + " is not a " + kind + " of " + kernel + suggestion(name, known));
  }
  if (std::ranges::find(seen, name) != seen.end()) {
    cubind::refuse(field, quoted(name) + " is given twice");
  }
  seen.push_back(name);
}

void check_value(const DimSpec& dim, std::int64_t value, const std::string& field) {
  if (value < dim.minimum || value > kMaxDim) {
    cubind::refuse(field, dim.name + " = " + std::to_string(value) + " is not in " +
                              std::to_string(dim.minimum) + " to 2^48");
  }
}

void check_types(const KernelSpec& spec, const v1::Problem& problem, const std::string& field) {
  const std::vector<std::string> known = names_of(spec.types);
  std::vector<std::string> seen;
  for (int i = 0; i < problem.types_size(); ++i) {
    const v1::TypeBinding& wire = problem.types(i);
    check_name_of(wire.name(), known, seen, spec.name, "type", element_member(field + ".types", i, "name"));
    const TypeSpec& type = *std::ranges::find(spec.types, wire.name(), &TypeSpec::name);
    const std::string where = element_member(field + ".types", i, "type");
    const DType choice = dtype_from_wire(wire.type(), where);
    if (std::ranges::find(type.choices, choice) == type.choices.end()) {
      std::vector<std::string> choices;
      for (const DType listed : type.choices) {
        choices.emplace_back(to_string(listed));
      }
      cubind::refuse(where, std::string(to_string(choice)) + " is not listed for " + type.name + " (one of " +
                                join(choices, ", ") + ")");
    }
  }
  for (const std::string& name : known) {
    if (std::ranges::find(seen, name) == seen.end()) {
      cubind::refuse(field + ".types", quoted(name) + " is missing");
    }
  }
}

void check_dims(const KernelSpec& spec, const v1::Problem& problem, const std::string& field) {
  const std::vector<std::string> dims = names_of(spec.dims);
  const std::vector<std::string> flags = names_of(spec.flags);
  std::vector<std::string> known = dims;  // a flag may stand among the dims
  known.insert(known.end(), flags.begin(), flags.end());
  std::vector<std::string> seen;
  for (int i = 0; i < problem.dims_size(); ++i) {
    const v1::NamedValue& wire = problem.dims(i);
    check_name_of(wire.name(), known, seen, spec.name, "dim", element_member(field + ".dims", i, "name"));
    const auto dim = std::ranges::find(spec.dims, wire.name(), &DimSpec::name);
    if (dim != spec.dims.end()) {
      check_value(*dim, wire.value(), element_member(field + ".dims", i, "value"));
    }
  }
  for (int i = 0; i < problem.flags_size(); ++i) {
    check_name_of(problem.flags(i).name(), flags, seen, spec.name, "flag",
                  element_member(field + ".flags", i, "name"));
  }
  for (const std::string& name : dims) {
    if (std::ranges::find(seen, name) == seen.end()) {
      cubind::refuse(field + ".dims", quoted(name) + " is missing");
    }
  }
}

}  // namespace

void check_problem_of(const KernelSpec& spec, const v1::Problem& problem, const std::string& field) {
  check_dims(spec, problem, field);
  check_types(spec, problem, field);
  if (!problem.scenario().empty()) {
    cubind::refuse(field + ".scenario",
                   quoted(problem.scenario()) + " is not a scenario of " + spec.name + ", it has none");
  }
}

void check_architecture_of(const KernelSpec& spec, const std::string& architecture,
                           const std::string& field) {
  if (spec.triton && spec.triton->architecture != architecture) {
    cubind::refuse(field, "the Triton kernel " + spec.name + " is defined for " + spec.triton->architecture +
                              " and not for " + architecture + ": define it there");
  }
}

}  // namespace cubind
