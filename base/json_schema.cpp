#include "base/json_schema.hpp"

#include <algorithm>
#include <optional>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"

namespace cubind {

struct JsonSchema::Compiled {
  std::string name;
  Json source;
  std::vector<std::string> known_keys;  // of all objects that the schema describes
  valijson::Schema schema;
};

namespace {

using Steps = std::vector<std::string>;

struct Violation {
  Steps steps;
  std::string description;
};

// valijson writes a place as "<root>", "[key]", "[0]".
Steps steps_of(const std::vector<std::string>& context) {
  Steps steps;
  for (const std::string& part : context) {
    if (part.size() >= 2 && part.front() == '[' && part.back() == ']') {
      steps.push_back(part.substr(1, part.size() - 2));
    }
  }
  return steps;
}

std::string pointer_of(const Steps& steps) {
  std::string pointer;
  for (const std::string& step : steps) {
    pointer += "/" + escape_pointer_step(step);
  }
  return pointer;
}

void collect_keys(const Json& schema, std::vector<std::string>& keys) {
  if (schema.is_object()) {
    if (const auto properties = schema.find("properties");
        properties != schema.end() && properties->is_object()) {
      for (const auto& [key, unused] : properties->items()) {
        keys.push_back(key);
      }
    }
  }
  if (schema.is_structured()) {
    for (const Json& part : schema) {
      collect_keys(part, keys);
    }
  }
}

// The words that valijson puts in quotes at the end of a message that begins so.
std::optional<std::string> quoted_end(const std::string& description, std::string_view prefix) {
  const auto open = description.find(": '");
  if (!description.starts_with(prefix) || open == std::string::npos || !description.ends_with("'.")) {
    return std::nullopt;
  }
  return description.substr(open + 3, description.size() - open - 5);
}

const Json* follow_reference(const Json& root, const Json* schema) {
  for (int hops = 0; hops < 16 && schema != nullptr && schema->is_object() && schema->contains("$ref");
       ++hops) {
    const std::string reference = (*schema)["$ref"].get<std::string>();
    if (!reference.starts_with('#')) {
      return nullptr;
    }
    const Json::json_pointer pointer(reference.substr(1));
    schema = root.contains(pointer) ? &root.at(pointer) : nullptr;
  }
  return schema;
}

// The part of the schema that describes the place, unless a combination of schemas lies between.
const Json* describing(const Json& root, const Steps& steps) {
  const Json* schema = follow_reference(root, &root);
  for (const std::string& step : steps) {
    if (schema == nullptr || !schema->is_object()) {
      return nullptr;
    }
    const Json* next = nullptr;
    if (schema->contains("properties") && (*schema)["properties"].contains(step)) {
      next = &(*schema)["properties"][step];
    } else if (schema->contains("items") && (*schema)["items"].is_object()) {
      next = &(*schema)["items"];
    } else if (schema->contains("additionalProperties") && (*schema)["additionalProperties"].is_object()) {
      next = &(*schema)["additionalProperties"];
    }
    schema = follow_reference(root, next);
  }
  return schema;
}

// `"a", "b" or "c"` of an array, or the one value.
std::string alternatives(const Json& values) {
  if (!values.is_array()) {
    return values.is_string() ? values.get<std::string>() : values.dump();
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += values[i].dump();
  }
  return text;
}

std::string explain(const Json& schema_root, const Json& document, const Violation& violation) {
  const Json::json_pointer pointer(pointer_of(violation.steps));
  std::string found;
  if (document.contains(pointer)) {
    const Json& value = document.at(pointer);
    found = value.is_structured()
                ? (value.is_array() ? ", found an array" : ", found an object")
                : ", found " + (value.is_string() ? quoted(value.get<std::string>()) : value.dump());
  }
  if (const Json* schema = describing(schema_root, violation.steps);
      schema != nullptr && schema->is_object()) {
    if (violation.description.starts_with("Value type") && schema->contains("type")) {
      return "expected " + alternatives((*schema)["type"]) + found;
    }
    if (violation.description.starts_with("Failed to match against any enum") && schema->contains("enum")) {
      return "expected " + alternatives((*schema)["enum"]) + found;
    }
    if (violation.description.find("'const'") != std::string::npos && schema->contains("const")) {
      return "expected " + alternatives(Json::array({(*schema)["const"]})) + found;
    }
    if (violation.description.starts_with("Failed to match regex") && schema->contains("pattern")) {
      return "expected text that matches " + alternatives((*schema)["pattern"]) + found;
    }
  }
  std::string text = violation.description;
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text + found;
}

// The first of the deepest violations; the outer ones only say that an inner one exists.
Violation deepest(const std::vector<Violation>& violations) {
  return *std::ranges::max_element(violations, {},
                                   [](const Violation& violation) { return violation.steps.size(); });
}

// Elements of an array by index; members by name, since the document that is checked is sorted by name.
bool stands_before(const Steps& a, const Steps& b) {
  return std::ranges::lexicographical_compare(a, b, [](const std::string& left, const std::string& right) {
    const auto is_index = [](const std::string& step) {
      return !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
    };
    const bool by_length = is_index(left) && is_index(right) && left.size() != right.size();
    return by_length ? left.size() < right.size() : left < right;
  });
}

std::string pretty_missing(const std::string& description) {
  constexpr std::string_view kPrefix = "Missing required property '";
  if (!description.starts_with(kPrefix) || description.size() < kPrefix.size() + 2) {
    return "";
  }
  return "the key " + quoted(description.substr(kPrefix.size(), description.size() - kPrefix.size() - 2)) +
         " is missing";
}

}  // namespace

JsonSchema::JsonSchema(std::string_view schema_text, std::string name) {
  auto compiled = std::make_unique<Compiled>();
  compiled->name = std::move(name);
  try {
    compiled->source = Json::parse(schema_text);
    collect_keys(compiled->source, compiled->known_keys);
    const valijson::adapters::NlohmannJsonAdapter adapter(compiled->source);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, compiled->schema);
  } catch (const std::exception& fault) {
    throw Error(ErrorCode::Internal, "schema " + compiled->name, fault.what());
  }
  compiled_ = std::move(compiled);
}

JsonSchema::~JsonSchema() = default;
JsonSchema::JsonSchema(JsonSchema&&) noexcept = default;
JsonSchema& JsonSchema::operator=(JsonSchema&&) noexcept = default;

namespace {

Error error_of(const Json& schema, const std::vector<std::string>& known_keys, const Json& document,
               const std::string& file, Violation violation) {
  std::string cause = pretty_missing(violation.description);
  if (const auto key = quoted_end(violation.description, "Object contains a property")) {
    violation.steps.push_back(*key);
    const auto nearest = nearest_word(*key, known_keys);
    cause =
        "unexpected key" + (nearest && *nearest != *key ? ", did you mean " + quoted(*nearest) + "?" : "");
  } else if (cause.empty()) {
    cause = explain(schema, document, violation);
  }
  const std::string pointer = pointer_of(violation.steps);
  return {ErrorCode::InvalidArgument, pointer.empty() ? file : file + " " + pointer, std::move(cause)};
}

std::vector<Violation> violations_of(const valijson::Schema& schema, const Json& document) {
  const valijson::adapters::NlohmannJsonAdapter target(document);
  valijson::ValidationResults results;
  valijson::Validator validator;
  std::vector<Violation> violations;
  if (validator.validate(schema, target, &results)) {
    return violations;
  }
  for (const auto& error : results) {
    violations.push_back({steps_of(error.context), error.description});
  }
  if (violations.empty()) {
    violations.push_back({{}, "does not satisfy the schema"});
  }
  return violations;
}

// Leaves out violations that only say that an inner one exists; sorted.
std::vector<Violation> innermost(std::vector<Violation> all) {
  const auto outer = std::ranges::stable_partition(all, [](const Violation& violation) {
    return !violation.description.starts_with("Failed to validate");
  });
  const auto before = [](const Violation& a, const Violation& b) { return stands_before(a.steps, b.steps); };
  std::ranges::stable_sort(all.begin(), outer.begin(), before);
  std::vector<Violation> found(all.begin(), outer.begin());
  for (const Violation& violation : outer) {
    const auto inner = std::ranges::lower_bound(all.begin(), outer.begin(), violation, before);
    const Steps& steps = violation.steps;
    if (inner == outer.begin() || std::ranges::mismatch(steps, inner->steps).in1 != steps.end()) {
      found.push_back(violation);
    }
  }
  std::ranges::stable_sort(found, before);
  return found;
}

}  // namespace

void JsonSchema::validate(const OrderedJson& document, const std::string& file) const {
  // A named copy of the type that valijson's adapter knows: on a temporary ordered_json it reads freed
  // memory.
  const Json copy(document);
  const std::vector<Violation> violations = violations_of(compiled_->schema, copy);
  if (!violations.empty()) {
    throw error_of(compiled_->source, compiled_->known_keys, copy, file, deepest(violations));
  }
}

std::vector<Error> JsonSchema::violations(const OrderedJson& document, const std::string& file) const {
  const Json copy(document);
  std::vector<Error> errors;
  for (Violation& violation : innermost(violations_of(compiled_->schema, copy))) {
    errors.push_back(error_of(compiled_->source, compiled_->known_keys, copy, file, std::move(violation)));
  }
  return errors;
}

}  // namespace cubind
