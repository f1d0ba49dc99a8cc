#include "plan/problem.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

std::optional<std::int64_t> find(const std::vector<NamedValue>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  return found == values.end() ? std::nullopt : std::optional(found->value);
}

void append(std::string& text, std::string_view name, std::string_view value) {
  if (!text.empty()) {
    text += ',';
  }
  text += name;
  text += '=';
  text += value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text == "true" || text == "True") {  // Python's spelling too
    return 1;
  }
  if (text == "false" || text == "False") {
    return 0;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

[[noreturn]] void refuse_part(std::string_view part, std::string cause) {
  throw Error(ErrorCode::InvalidArgument, "problem " + quoted(part), std::move(cause));
}

bool has_name(const Problem& problem, std::string_view name) {
  return problem.dim(name) || problem.type(name) || (name == "scenario" && !problem.scenario.empty());
}

void parse_part(std::string_view part, Problem& problem) {
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) {
    refuse_part(part, "a part is NAME=VALUE, as in N=4096 or T=bf16");
  }
  const std::string name(trimmed(part.substr(0, equals)));
  const std::string_view value = trimmed(part.substr(equals + 1));
  if (name.empty() || value.empty()) {
    refuse_part(part, "a part is NAME=VALUE, as in N=4096 or T=bf16");
  }
  if (has_name(problem, name)) {
    refuse_part(part, quoted(name) + " is given twice");
  }
  if (!put_value(problem, name, value)) {
    refuse_part(part, quoted(value) + " is neither a 64-bit integer, a type, nor true or false" +
                          dtype_suggestion(value));
  }
}

}  // namespace

std::optional<std::int64_t> Problem::dim(std::string_view name) const { return find(dims, name); }

std::optional<DType> Problem::type(std::string_view name) const {
  const auto found = std::ranges::find(types, name, &TypeBinding::name);
  return found == types.end() ? std::nullopt : std::optional(found->type);
}

std::optional<std::int64_t> Problem::flag(std::string_view name) const { return find(flags, name); }

std::optional<std::int64_t> Configuration::value(std::string_view name) const { return find(values, name); }

std::string to_string(const Problem& problem) {
  std::string text;
  for (const NamedValue& dim : problem.dims) {
    append(text, dim.name, std::to_string(dim.value));
  }
  for (const TypeBinding& type : problem.types) {
    append(text, type.name, to_string(type.type));
  }
  for (const NamedValue& flag : problem.flags) {
    append(text, flag.name, std::to_string(flag.value));
  }
  if (!problem.scenario.empty()) {
    append(text, "scenario", problem.scenario);
  }
  return text;
}

std::string to_string(const Configuration& configuration) {
  std::string text;
  for (const NamedValue& value : configuration.values) {
    append(text, value.name, std::to_string(value.value));
  }
  return text;
}

bool put_value(Problem& problem, const std::string& name, std::string_view value) {
  if (name == "scenario") {
    problem.scenario = value;
  } else if (const auto integer = parse_integer(value)) {
    problem.dims.push_back({name, *integer});
  } else if (const auto type = parse_dtype(value)) {
    problem.types.push_back({name, *type});
  } else {
    return false;
  }
  return true;
}

Problem parse_problem(std::string_view text) {
  Problem problem;
  if (trimmed(text).empty()) {
    return problem;
  }
  while (true) {
    const auto comma = text.find(',');
    parse_part(trimmed(text.substr(0, comma)), problem);
    if (comma == std::string_view::npos) {
      return problem;
    }
    text.remove_prefix(comma + 1);
  }
}

}  // namespace cubind
