#include "client/cubindctl/shape_list.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kMaxProblems = 1000;  // of one call
constexpr std::int64_t kMaxDim = std::int64_t{1} << 48;

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
    node.fail(quoted(spelling) + " is not a type" + suggestion(spelling, dtype_names()));
  }
  return *type;
}

void read_member(const JsonNode& node, Problem& problem) {
  if (node.key().empty()) {
    node.fail("the name is empty");
  }
  if (node.key() == "scenario") {
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

Problem read_problem(const JsonNode& node) {
  Problem problem;
  for (const JsonNode& member : node.members()) {
    read_member(member, problem);
  }
  if (problem.dims.empty()) {
    node.fail("a problem has at least one dim, as in {\"N\": 4096, \"T\": \"bf16\"}");
  }
  return problem;
}

// The names of dims and types, sorted: problems of one kernel have the same.
std::vector<std::string> names_of(const Problem& problem) {
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

void check_against_earlier(const JsonNode& node, const Problem& problem,
                           const std::vector<Problem>& earlier) {
  if (earlier.empty()) {
    return;
  }
  if (names_of(problem) != names_of(earlier.front())) {
    node.fail("has the names " + join(names_of(problem), ", ") + ", /problems/0 has " +
              join(names_of(earlier.front()), ", "));
  }
  const auto same = std::ranges::find(earlier, sorted_text(problem), sorted_text);
  if (same != earlier.end()) {
    node.fail("is the same as /problems/" + std::to_string(same - earlier.begin()));
  }
}

}  // namespace

ShapeList read_shape_list(std::string_view text, const std::string& file) {
  const OrderedJson document = parse_json_strict(text, file);
  const JsonNode root(document, file);
  root.expect_keys({"kernel", "problems"});
  ShapeList list;
  if (const auto kernel = root.find("kernel")) {
    list.kernel = kernel->as_nonempty_string();
  }
  const JsonNode problems = root.at("problems");
  for (const JsonNode& node : problems.elements()) {
    Problem problem = read_problem(node);
    check_against_earlier(node, problem, list.problems);
    list.problems.push_back(std::move(problem));
  }
  if (list.problems.empty()) {
    problems.fail("must not be empty");
  }
  if (list.problems.size() > kMaxProblems) {
    problems.fail(std::to_string(list.problems.size()) + " problems, at most 1000 are tuned in one call");
  }
  return list;
}

}  // namespace cubind::ctl
