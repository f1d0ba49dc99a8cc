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

constexpr std::array<ElementType, 18> kElementTypes = {{{"double", 8},
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

constexpr std::size_t kPointerBytes = 8;
constexpr std::size_t kTensorMapBytes = 128;

EntryParameter parameter_of(const std::string& type) {
  EntryParameter parameter{type};
  std::string_view rest = without_qualifiers(type);
  while (rest.ends_with('&')) {
    parameter.is_pointer = true;
    rest.remove_suffix(1);
  }
  if (!parameter.is_pointer && rest.ends_with('*')) {
    parameter.is_pointer = true;
    rest.remove_suffix(1);
  }
  const auto* const found = std::ranges::find(kElementTypes, without_qualifiers(rest), &ElementType::name);
  parameter.element = found == kElementTypes.end() ? nullptr : &*found;
  return parameter;
}

bool is_element(const ElementType& type, DType element) {
  if (type.bytes != size_of(element)) {
    return false;
  }
  return is_floating(element) ? type.name == cuda_name(element) || type.is_unsigned : type.is_integer;
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

std::optional<std::vector<EntryParameter>> entry_parameters(const std::string& symbol,
                                                            const CubinEntry* entry) {
  const auto types = parameter_types(symbol);
  const auto* const sizes = entry && entry->parameter_bytes ? &*entry->parameter_bytes : nullptr;
  if (!types && !sizes) {
    return std::nullopt;
  }
  std::vector<EntryParameter> parameters(sizes ? sizes->size() : types->size());
  if (types && types->size() == parameters.size()) {
    std::ranges::transform(*types, parameters.begin(), parameter_of);
  }
  for (std::size_t i = 0; sizes && i < parameters.size(); ++i) {
    parameters[i].bytes = (*sizes)[i];
  }
  return parameters;
}

bool fits(const EntryParameter& parameter, const ParameterTemplate& argument) {
  if (argument.source == ParameterSource::TensorMap) {
    return (parameter.bytes == 0 || parameter.bytes == kTensorMapBytes) && !parameter.is_pointer &&
           !parameter.element;
  }
  const bool is_buffer = argument.source == ParameterSource::Buffer;
  if (parameter.bytes != 0 && parameter.bytes != (is_buffer ? kPointerBytes : size_of(argument.type))) {
    return false;
  }
  if (parameter.type.empty()) {
    return true;
  }
  if (parameter.is_pointer != is_buffer) {
    return !parameter.is_pointer && !parameter.element;  // a type of the kernel's own may hold a pointer
  }
  const bool is_compared = parameter.element && !(is_buffer && argument.role == Role::Scratch);
  return !is_compared || is_element(*parameter.element, argument.type);
}

std::string to_string(const EntryParameter& parameter) {
  if (parameter.bytes == 0 || parameter.is_pointer || parameter.element) {
    return parameter.type;
  }
  return (parameter.type.empty() ? "" : parameter.type + " ") + "of " + counted(parameter.bytes, "byte");
}

}  // namespace cubind
