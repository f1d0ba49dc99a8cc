#include "tuner/spec/spec_fields.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::string_view kReserved[] = {"cdiv",   "min",    "max",      "abs",
                                          "sizeof", "device", "artifact", "scenario"};

void check_count(const JsonNode& node, std::size_t count, std::size_t least, std::size_t most,
                 std::string_view what) {
  if (count < least) {
    node.fail("must not be empty");
  }
  if (count > most) {
    node.fail(std::to_string(count) + " " + std::string(what) + ", at most " + std::to_string(most) +
              " are allowed");
  }
}

}  // namespace

std::string read_name(const JsonNode& member, bool in_expressions) {
  const std::string& name = member.key();
  if (!is_identifier(name)) {
    member.fail(quoted(name) + " is not a name: letters, digits and _, not beginning with a digit");
  }
  if (name.size() > SpecLimits::kNameLength) {
    member.fail("the name has " + std::to_string(name.size()) + " characters, at most " +
                std::to_string(SpecLimits::kNameLength) + " are allowed");
  }
  if (in_expressions && std::ranges::find(kReserved, name) != std::end(kReserved)) {
    member.fail(quoted(name) + " is a word of expressions: choose another name");
  }
  return name;
}

ExpressionLimits expression_limits() {
  ExpressionLimits limits;
  limits.max_length = SpecLimits::kExpressionLength;
  return limits;
}

std::string read_expression(const JsonNode& node, const SymbolTable& symbols) {
  if (node.is_integer()) {
    return std::to_string(node.as_int64());
  }
  if (!node.is_string()) {
    node.fail("expected an expression or an integer, found " + node.type_name());
  }
  std::string text = node.as_string();
  try {
    const Expression expression = Expression::parse(text, expression_limits());
    for (const std::string& name : expression.variables()) {
      if (name.starts_with("artifact.")) {
        node.fail(name + ": not supported yet");
      }
    }
    expression.bind(symbols);
  } catch (const ExpressionError& error) {
    node.fail(error.what());
  }
  return text;
}

std::vector<std::string> read_axes(const JsonNode& node, const SymbolTable& symbols, std::size_t most) {
  std::vector<std::string> axes;
  for (const JsonNode& axis : elements_of(node, most, "axes")) {
    axes.push_back(read_expression(axis, symbols));
  }
  return axes;
}

std::string read_folder(const JsonNode& node) {
  const std::string text = node.as_nonempty_string();
  const std::filesystem::path path(text);
  if (path.is_absolute()) {
    node.fail(quoted(text) + " is absolute: it must be relative to the spec's folder");
  }
  if (text.find('\\') != std::string::npos || text.find('\0') != std::string::npos) {
    node.fail(quoted(text) + " has a character that no path here may have");
  }
  std::string normal = path.lexically_normal().generic_string();
  if (normal.size() > 1 && normal.ends_with('/')) {
    normal.pop_back();
  }
  return normal;
}

std::string read_path(const JsonNode& node) {
  const std::string text = node.as_nonempty_string();
  std::string normal = read_folder(node);
  if (normal == ".." || normal.starts_with("../")) {
    node.fail(quoted(text) + " leaves the spec's folder");
  }
  if (normal != text || normal == ".") {
    node.fail(quoted(text) + " is not a plain file path, as in kernel.cu");
  }
  return normal;
}

std::vector<JsonNode> elements_of(const JsonNode& node, std::size_t most, std::string_view what,
                                  std::size_t least) {
  std::vector<JsonNode> elements = node.elements();
  check_count(node, elements.size(), least, most, what);
  return elements;
}

std::vector<JsonNode> members_of(const JsonNode& node, std::size_t most, std::string_view what) {
  if (!node.is_object()) {
    node.fail("expected an object with the " + std::string(what) + " by name, {\"NAME\": ...}, found " +
              node.type_name());
  }
  std::vector<JsonNode> members = node.members();
  check_count(node, members.size(), 1, most, what);
  return members;
}

void refuse_scenarios(const JsonNode& object) {
  for (const std::string_view key : {"scenario", "scenarios"}) {
    if (object.contains(key)) {
      object.at(key).fail(
          "not supported yet: data of another kind, which other variants may win, is a spec of its own with "
          "another name "
          "and other fills");
    }
  }
}

}  // namespace cubind
