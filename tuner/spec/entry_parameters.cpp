#include "tuner/spec/entry_parameters.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/text.hpp"

namespace cubind {
namespace {

/// The demangler recurses.
constexpr std::size_t kLongestSymbol = 20'000;

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > kLongestSymbol) {
    return "";
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return text ? text.get() : "";
}

/// Between the commas that stand in no brackets.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    depth += std::string_view("(<[{").find(list[at]) != std::string_view::npos ? 1 : 0;
    depth -= std::string_view(")>]}").find(list[at]) != std::string_view::npos ? 1 : 0;
    if (list[at] == ',' && depth == 0) {
      parts.emplace_back(trimmed(list.substr(from, at - from)));
      from = at + 1;
    }
  }
  if (!trimmed(list).empty()) {
    parts.emplace_back(trimmed(list.substr(from)));
  }
  return parts;
}

std::string_view without_qualifiers(std::string_view type) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view word : {"const", "volatile", "__restrict__"}) {
      type = trimmed(type);
      if (type.ends_with(word)) {
        type.remove_suffix(word.size());
        found = true;
      }
    }
  }
  return type;
}

struct KnownType {
  std::string_view name;
  std::size_t bytes = 0;
  bool is_integer = false;
  bool is_unsigned = false;
};

constexpr std::array<KnownType, 18> kKnownTypes = {{{"double", 8},
                                                    {"float", 4},
                                                    {"__half", 2},
                                                    {"__nv_bfloat16", 2},
                                                    {"__nv_fp8_e4m3", 1},
                                                    {"__nv_fp8_e5m2", 1},
                                                    {"bool", 1, true},
                                                    {"char", 1, true},
                                                    {"signed char", 1, true},
                                                    {"unsigned char", 1, true, true},
                                                    {"short", 2, true},
                                                    {"unsigned short", 2, true, true},
                                                    {"int", 4, true},
                                                    {"unsigned int", 4, true, true},
                                                    {"long", 8, true},
                                                    {"unsigned long", 8, true, true},
                                                    {"long long", 8, true},
                                                    {"unsigned long long", 8, true, true}}};

const KnownType* known(std::string_view name) {
  const auto found = std::ranges::find(kKnownTypes, name, &KnownType::name);
  return found == kKnownTypes.end() ? nullptr : &*found;
}

bool is_element(const KnownType& type, DType element) {
  if (type.bytes != size_of(element)) {
    return false;
  }
  return is_floating(element) ? type.name == cuda_name(element) || type.is_unsigned : type.is_integer;
}

bool fits(const std::string& parameter, const ArgumentSpec& argument, DType element) {
  std::string_view type = without_qualifiers(parameter);
  const bool is_pointer = type.ends_with('*');
  if (is_pointer) {
    type.remove_suffix(1);
    type = without_qualifiers(type);
  }
  const KnownType* value = known(type);
  if (is_pointer != argument.buffer) {
    return !is_pointer && !value;  // a type of the kernel's own may hold a pointer
  }
  return !value || (is_pointer && argument.role == Role::Scratch) || is_element(*value, element);
}

std::string described(const ArgumentSpec& argument, DType element) {
  const std::string type(to_string(element)), spelled(cuda_name(element));
  return argument.name + (argument.buffer ? " is a buffer of " : " is a scalar ") + type + " (" + spelled +
         (argument.buffer ? "*)" : ")");
}

}  // namespace

std::optional<std::vector<std::string>> parameter_types(const std::string& symbol) {
  const std::string text = demangled(symbol);
  if (!text.ends_with(')')) {
    return std::nullopt;
  }
  int depth = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    depth += text[at] == ')' ? 1 : text[at] == '(' ? -1 : 0;
    if (depth == 0) {
      return split(std::string_view(text).substr(at + 1, text.size() - at - 2));
    }
  }
  return std::nullopt;
}

namespace {

std::vector<ArgumentFault> faults_of(const std::vector<LaunchSpec>& launches, const std::string& place,
                                     const KernelSpec& spec, const Problem& problem,
                                     const std::vector<std::string>& symbols) {
  std::vector<ArgumentFault> faults;
  for (std::size_t i = 0; i < std::min(symbols.size(), launches.size()); ++i) {
    const std::vector<std::string>& passed = launches[i].arguments;
    const std::string list = place + std::to_string(i) + "/arguments";
    const auto types = parameter_types(symbols[i]);
    if (types && types->size() != passed.size()) {
      faults.push_back({list, "has " + std::to_string(passed.size()) + ", the entry takes " +
                                  std::to_string(types->size()) + ": (" + join(*types, ", ") + ")"});
      continue;
    }
    for (std::size_t j = 0; types && j < passed.size(); ++j) {
      const ArgumentSpec& argument = *spec.argument(passed[j]);
      const DType element = spec.element_type(argument, problem);
      if (!fits((*types)[j], argument, element)) {
        faults.push_back({list + "/" + std::to_string(j),
                          described(argument, element) + ", the entry's parameter is " + (*types)[j]});
      }
    }
  }
  return faults;
}

}  // namespace

std::vector<ArgumentFault> argument_faults(const KernelSpec& spec, const Problem& problem,
                                           const std::vector<std::string>& symbols) {
  return faults_of(spec.launches, "/launches/", spec, problem, symbols);
}

std::vector<ArgumentFault> reference_argument_faults(const KernelSpec& spec, const Problem& problem,
                                                     const std::vector<std::string>& symbols) {
  return faults_of(spec.reference.launches, "/reference/launches/", spec, problem, symbols);
}

}  // namespace cubind
