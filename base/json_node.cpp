#include "base/json_node.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace cubind {

std::string escape_pointer_step(std::string_view step) {
  std::string result;
  for (const char c : step) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

JsonNode::JsonNode(const OrderedJson& document, std::string file)
    : value_(&document), file_(std::make_shared<const std::string>(std::move(file))) {}

JsonNode::JsonNode(const OrderedJson& value, const JsonNode& parent, std::string key)
    : value_(&value),
      file_(parent.file_),
      pointer_(parent.pointer_ + "/" + escape_pointer_step(key)),
      key_(std::move(key)) {}

std::string JsonNode::where() const { return pointer_.empty() ? *file_ : *file_ + " " + pointer_; }

bool JsonNode::is_null() const { return value_->is_null(); }
bool JsonNode::is_boolean() const { return value_->is_boolean(); }
bool JsonNode::is_integer() const { return value_->is_number_integer(); }
bool JsonNode::is_number() const { return value_->is_number(); }
bool JsonNode::is_string() const { return value_->is_string(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_object() const { return value_->is_object(); }

std::string JsonNode::type_name() const {
  switch (value_->type()) {
    case OrderedJson::value_t::null:
      return "null";
    case OrderedJson::value_t::boolean:
      return "a boolean";
    case OrderedJson::value_t::number_integer:
    case OrderedJson::value_t::number_unsigned:
      return "an integer";
    case OrderedJson::value_t::number_float:
      return "a number";
    case OrderedJson::value_t::string:
      return "a string";
    case OrderedJson::value_t::array:
      return "an array";
    case OrderedJson::value_t::object:
      return "an object";
    default:
      return "not JSON";
  }
}

JsonNode JsonNode::at(std::string_view key) const {
  auto member = find(key);
  if (!member) {
    fail("the key " + quoted(key) + " is missing");
  }
  return *std::move(member);
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!is_object()) {
    fail_type("an object");
  }
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    if (it.key() == key) {
      return JsonNode(it.value(), *this, std::string(key));
    }
  }
  return std::nullopt;
}

bool JsonNode::contains(std::string_view key) const { return find(key).has_value(); }

JsonNode JsonNode::at(std::size_t index) const {
  if (!is_array()) {
    fail_type("an array");
  }
  if (index >= value_->size()) {
    fail("the element " + std::to_string(index) + " is missing, there are " + std::to_string(value_->size()));
  }
  return JsonNode((*value_)[index], *this, std::to_string(index));
}

std::size_t JsonNode::size() const {
  if (!is_array() && !is_object()) {
    fail_type("an array or an object");
  }
  return value_->size();
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!is_array()) {
    fail_type("an array");
  }
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    nodes.push_back(JsonNode((*value_)[i], *this, std::to_string(i)));
  }
  return nodes;
}

std::vector<JsonNode> JsonNode::members() const {
  if (!is_object()) {
    fail_type("an object");
  }
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    nodes.push_back(JsonNode(it.value(), *this, it.key()));
  }
  return nodes;
}

std::string JsonNode::as_string() const {
  if (!is_string()) {
    fail_type("a string");
  }
  return value_->get<std::string>();
}

std::string JsonNode::as_nonempty_string() const {
  std::string text = as_string();
  if (text.empty()) {
    fail("must not be empty");
  }
  return text;
}

bool JsonNode::as_bool() const {
  if (!is_boolean()) {
    fail_type("true or false");
  }
  return value_->get<bool>();
}

std::int64_t JsonNode::as_int64() const {
  // Integers beyond uint64 have become doubles in the parser.
  if (is_number() && !is_integer()) {
    const double number = value_->get<double>();
    fail(std::abs(number) >= 0x1p63 ? value_->dump() + " is outside of the 64-bit integers"
                                    : value_->dump() + " is not written as an integer");
  }
  if (!is_integer()) {
    fail_type("an integer");
  }
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail(value_->dump() + " is outside of the 64-bit integers");
  }
  return value_->get<std::int64_t>();
}

std::int64_t JsonNode::as_int64(std::int64_t low, std::int64_t high) const {
  const std::int64_t value = as_int64();
  if (value < low) {
    fail(std::to_string(value) + " is below " + std::to_string(low));
  }
  if (value > high) {
    fail(std::to_string(value) + " is above " + std::to_string(high));
  }
  return value;
}

double JsonNode::as_number() const {
  if (!is_number()) {
    fail_type("a number");
  }
  return value_->get<double>();
}

namespace {

/// The longest choice that the word begins with: "input" means "in", though "inout" is one letter away.
std::optional<std::string> longest_beginning(const std::string& word, std::span<const std::string> choices) {
  std::optional<std::string> longest;
  for (const std::string& choice : choices) {
    if (word.starts_with(choice) && (!longest || choice.size() > longest->size())) {
      longest = choice;
    }
  }
  return longest;
}

}  // namespace

std::size_t JsonNode::as_choice(std::span<const std::string> choices) const {
  const std::string text = as_string();
  const auto found = std::ranges::find(choices, text);
  if (found == choices.end()) {
    const auto beginning = longest_beginning(text, choices);
    const auto nearest = beginning ? beginning : nearest_word(text, choices);
    fail(quoted(text) + " is not one of " + join(choices, ", ") +
         (nearest ? "; did you mean " + quoted(*nearest) + "?" : ""));
  }
  return static_cast<std::size_t>(found - choices.begin());
}

std::size_t JsonNode::as_choice(std::initializer_list<std::string_view> choices) const {
  const std::vector<std::string> names(choices.begin(), choices.end());
  return as_choice(std::span<const std::string>(names));
}

std::string JsonNode::string_or(std::string_view key, std::string fallback) const {
  const auto member = find(key);
  return member ? member->as_string() : std::move(fallback);
}

std::int64_t JsonNode::int64_or(std::string_view key, std::int64_t fallback) const {
  const auto member = find(key);
  return member ? member->as_int64() : fallback;
}

bool JsonNode::bool_or(std::string_view key, bool fallback) const {
  const auto member = find(key);
  return member ? member->as_bool() : fallback;
}

double JsonNode::number_or(std::string_view key, double fallback) const {
  const auto member = find(key);
  return member ? member->as_number() : fallback;
}

void JsonNode::expect_keys(std::span<const std::string> known) const {
  for (const JsonNode& member : members()) {
    if (std::ranges::find(known, member.key()) == known.end()) {
      member.fail("unexpected key" + suggestion(member.key(), known));
    }
  }
}

void JsonNode::expect_keys(std::initializer_list<std::string_view> known) const {
  const std::vector<std::string> names(known.begin(), known.end());
  expect_keys(std::span<const std::string>(names));
}

void JsonNode::fail(std::string cause) const {
  throw Error(ErrorCode::InvalidArgument, where(), std::move(cause));
}

void JsonNode::fail_type(std::string_view expected) const {
  fail("expected " + std::string(expected) + ", found " + type_name());
}

}  // namespace cubind
