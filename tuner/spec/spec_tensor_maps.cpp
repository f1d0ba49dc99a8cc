// Arguments that are tensor maps of a buffer.
#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/names_of.hpp"
#include "base/text.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

const ArgumentSpec& read_buffer_of(const JsonNode& node, const KernelSpec& spec) {
  std::vector<std::string> buffers;
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.buffer && argument.symbol.empty()) {
      buffers.push_back(argument.name);
    }
  }
  const std::string name = node.as_string();
  if (std::ranges::find(buffers, name) == buffers.end()) {
    node.fail(quoted(name) + " is not a buffer that launches are given" + suggestion(name, buffers));
  }
  return *spec.argument(name);
}

// A type of the problem or of buffers, or one that only tensor maps have.
std::string read_element_type(const JsonNode& node, const KernelSpec& spec) {
  std::string text = node.as_string();
  const std::vector<std::string> own = names_of(spec.types);
  if (std::ranges::find(own, text) == own.end() && !parse_tensor_map_type(text) && !parse_dtype(text)) {
    node.fail(quoted(text) + " is not a type of a tensor map: it is one of the problem's types or of " +
              join(tensor_map_type_names(), ", "));
  }
  return text;
}

// "none" or "128B" as in the driver's names, or an expression of the bytes.
std::string read_mode(const JsonNode& node, const SymbolTable& symbols) {
  if (node.is_string()) {
    const std::string text = node.as_string();
    for (const char* const bytes : {"16", "32", "64", "128", "256"}) {
      if (text == std::string(bytes) + "B") {
        return bytes;
      }
    }
    if (text == "none") {
      return "0";
    }
  }
  return read_expression(node, symbols);
}

// A map is measured and checked with strides of scalars that are 0.
SymbolTable with_caller_scalars(SymbolTable symbols, const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    const bool is_integer = argument.type == "i32" || argument.type == "i64";
    if (argument.from_caller && is_integer && argument.bench == 0) {
      symbols.add(caller_variable(argument.name));
    }
  }
  return symbols;
}

void read_numbers(const JsonNode& node, const SymbolTable& symbols, const KernelSpec& spec,
                  TensorMapTemplate& map) {
  const SymbolTable of_strides = with_caller_scalars(symbols, spec);
  for (const auto& [key, list] : kTensorMapLists) {
    if (const auto found = node.find(key)) {
      const bool strides = list == &TensorMapTemplate::strides;
      (map.*list).clear();
      for (const JsonNode& element : found->elements()) {
        (map.*list).push_back(read_expression(element, strides ? of_strides : symbols));
      }
    }
  }
  for (std::size_t i = 0; i < map.modes.size(); ++i) {
    if (const auto mode = node.find(kTensorMapModes[i])) {
      map.modes[i] = read_mode(*mode, symbols);
    }
  }
}

}  // namespace

void read_tensor_map(const JsonNode& node, const SpecScopes& scopes, KernelSpec& spec,
                     ArgumentSpec& argument) {
  node.expect_keys({"tensor_map", "type", "sizes", "strides", "box", "element_strides", "swizzle",
                    "interleave", "l2_promotion", "fill"});
  const ArgumentSpec& buffer = read_buffer_of(node.at("tensor_map"), spec);
  const auto type = node.find("type");
  TensorMapTemplate map{argument.name};
  map.sizes.assign(buffer.shape.rbegin(), buffer.shape.rend());
  if (map.sizes.empty() && !node.contains("sizes")) {
    node.fail(quoted(buffer.name) +
              " has no shape: give the map its \"sizes\", innermost first, as in [\"K\", \"M\"]");
  }
  node.at("box");
  read_numbers(node, scopes.launch, spec, map);
  if (const auto fill = node.find("fill")) {
    map.nan_fill = fill->as_choice({"zeros", "nan"}) == 1;
  }
  if (const auto fault = tensor_map_fault(map)) {
    (node.contains(fault->key) ? node.at(fault->key) : node).fail(fault->cause);
  }
  argument.type = type ? read_element_type(*type, spec) : buffer.type;
  argument.tensor_map = TensorMapSpec{buffer.name, std::move(map)};
}

TensorMapType KernelSpec::element_type(const TensorMapTemplate& map, const Problem& problem) const {
  const std::string& text = argument(map.argument)->type;
  if (const auto own = problem.type(text)) {
    return tensor_map_type(*own);
  }
  const auto type = parse_tensor_map_type(text);
  return type ? *type : tensor_map_type(parse_dtype(text).value());
}

}  // namespace cubind
