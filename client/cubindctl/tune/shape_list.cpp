#include "client/cubindctl/tune/shape_list.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "client/cubindctl/tune/shape_collector.hpp"
#include "client/cubindctl/tune/shape_csv.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

bool is_integer_text(const std::string& text) {
  return !text.empty() && text.find_first_not_of("-0123456789") == std::string::npos;
}

DType read_type(const JsonNode& node) {
  const std::string spelling = node.as_string();
  if (is_integer_text(spelling)) {
    node.fail("expected an integer, found the string " + quoted(spelling));
  }
  const std::optional<DType> type = parse_dtype(spelling);
  if (!type) {
    node.fail(quoted(spelling) + " is not a type" + dtype_suggestion(spelling));
  }
  return *type;
}

struct NamedProblem {
  Problem problem;
  std::string kernel;  // empty: it names none
};

void read_member(const JsonNode& node, NamedProblem& read) {
  Problem& problem = read.problem;
  if (node.key().empty()) {
    node.fail("the name is empty");
  }
  if (node.key() == "kernel") {
    read.kernel = node.as_nonempty_string();
  } else if (node.key() == "scenario") {
    problem.scenario = node.as_nonempty_string();
  } else if (node.is_string()) {
    problem.types.push_back({node.key(), read_type(node)});
  } else if (node.is_boolean()) {
    problem.dims.push_back({node.key(), node.as_bool() ? 1 : 0});  // the daemon knows which names are flags
  } else if (node.is_number()) {
    problem.dims.push_back({node.key(), node.as_int64(0, kMaxDim)});
  } else {
    node.fail("expected an integer, a type in quotes, or true or false, found " + node.type_name());
  }
}

NamedProblem read_problem(const JsonNode& node) {
  NamedProblem read;
  for (const JsonNode& member : node.members()) {
    read_member(member, read);
  }
  return read;
}

ShapeList read_json(std::string_view text, const std::string& file) {
  const OrderedJson document = parse_json_strict(text, file);
  const JsonNode root(document, file);
  if (!root.is_object()) {
    root.fail(
        "expected an object with \"problems\", as in {\"kernel\": \"scale\", \"problems\": [...]}, found " +
        root.type_name());
  }
  root.expect_keys({"kernel", "problems"});
  ShapeCollector shapes(file);
  const auto kernel = root.find("kernel");
  const std::string of_list = kernel ? kernel->as_nonempty_string() : "";
  const JsonNode problems = root.at("problems");
  for (const JsonNode& node : problems.elements()) {
    NamedProblem read = read_problem(node);
    shapes.add(std::move(read.problem), read.kernel.empty() ? of_list : read.kernel, node.pointer());
  }
  return shapes.finish(problems.pointer());
}

// Blank lines before it give syntax errors their line in the file.
OrderedJson parse_line(std::string_view line, std::size_t number, const std::string& file) {
  return parse_json_strict(std::string(number - 1, '\n').append(line), file);
}

void read_line(const OrderedJson& document, const std::string& where, const std::string& file,
               ShapeCollector& shapes) {
  const JsonNode root(document, file + " " + where);
  if (root.is_object() && root.contains("problems")) {
    root.fail(
        "a line is one problem, as in {\"N\": 4096, \"T\": \"bf16\"}; a list with \"problems\" is a "
        ".json file");
  }
  NamedProblem read = read_problem(root);
  shapes.add(std::move(read.problem), read.kernel, where);
}

ShapeList read_lines(std::string_view text, const std::string& file) {
  ShapeCollector shapes(file);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      read_line(parse_line(line, number, file), "line " + std::to_string(number), file, shapes);
    }
  }
  return shapes.finish("");
}

}  // namespace

ShapeList read_shape_list(std::string_view text, const std::string& file) {
  std::string kind = std::filesystem::path(file).extension().string();
  std::ranges::transform(kind, kind.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (kind == ".csv") {
    return read_shape_csv(text, file);
  }
  if (kind == ".jsonl") {
    return read_lines(text, file);
  }
  try {
    return read_json(text, file);
  } catch (const Error& error) {
    if (kind == ".json") {
      throw;
    }
    throw Error(error.code(), error.where(),
                error.cause() +
                    "; it was read as JSON: the name of a list with a problem a line ends in .jsonl "
                    "or .csv");
  }
}

}  // namespace cubind::ctl
