// Problems and configurations: named values in the order in which the kernel spec declares them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/dtype.hpp"

namespace cubind {

struct NamedValue {
  std::string name;
  std::int64_t value = 0;
  bool operator==(const NamedValue&) const = default;
};

struct TypeBinding {
  std::string name;
  DType type = DType::F32;
  bool operator==(const TypeBinding&) const = default;
};

/// Dims, types and flags of one call. KernelSpec::canonicalize orders and checks them.
struct Problem {
  std::vector<NamedValue> dims;
  std::vector<TypeBinding> types;
  std::vector<NamedValue> flags;
  std::string scenario;

  std::optional<std::int64_t> dim(std::string_view name) const;
  std::optional<DType> type(std::string_view name) const;
  std::optional<std::int64_t> flag(std::string_view name) const;
  bool operator==(const Problem&) const = default;
};

/// One value for each tunable, in declared order.
struct Configuration {
  std::vector<NamedValue> values;

  std::optional<std::int64_t> value(std::string_view name) const;
  bool operator==(const Configuration&) const = default;
};

/// "N=4096,D=4096,T=bf16", followed by flags and ",scenario=name" if there are any.
std::string to_string(const Problem& problem);

/// "THREADS=256,VECTOR=8".
std::string to_string(const Configuration& configuration);

/// Adds a named value from its text: an integer, true or false becomes a dim, the spelling of a type becomes
/// a type, and the value of `scenario` the scenario. Returns false for any other value and leaves the problem
/// unchanged.
bool put_value(Problem& problem, const std::string& name, std::string_view value);

/// Reads "N=4096,D=4096,T=bf16" in any order. A name with an integer value becomes a dim, a name with the
/// spelling of a type becomes a type; KernelSpec::canonicalize moves flags from the dims to the flags. Throws
/// Error(InvalidArgument) that names the wrong part.
Problem parse_problem(std::string_view text);

}  // namespace cubind
