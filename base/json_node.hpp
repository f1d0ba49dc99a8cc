#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cubind {

/// A read-only place in a JSON document: the value, the file's name and the JSON pointer that leads there.
/// Every getter that fails throws Error(InvalidArgument) whose `where` is "FILE POINTER" (the file alone at
/// the root), so that readers of a document need not build paths:
///   rmsnorm.json /tunables/VECTOR/2: 3 is not a power of two
/// Borrows the document, which must outlive it and every node that was derived from it. Cheap to copy; const
/// and therefore usable from several threads. Include "base/json.hpp" too where the value itself is used.
class JsonNode {
 public:
  JsonNode(const nlohmann::ordered_json& document, std::string file);

  /// RFC 6901, empty at the root; "~" and "/" in keys are escaped.
  const std::string& pointer() const noexcept { return pointer_; }
  std::string where() const;
  /// The last step of the pointer, unescaped: the member's name or the element's index; empty at the root.
  const std::string& key() const noexcept { return key_; }

  bool is_null() const;
  bool is_boolean() const;
  bool is_integer() const;  // written without fraction and exponent
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;
  /// "an object", "a string", ... for messages.
  std::string type_name() const;

  /// The member of an object. If the key is missing, at() throws an error that names it.
  JsonNode at(std::string_view key) const;
  std::optional<JsonNode> find(std::string_view key) const;
  bool contains(std::string_view key) const;
  /// The element of an array.
  JsonNode at(std::size_t index) const;
  /// The number of elements of an array or members of an object.
  std::size_t size() const;

  /// The elements of an array; the members of an object in declared order (their names are key()).
  std::vector<JsonNode> elements() const;
  std::vector<JsonNode> members() const;

  std::string as_string() const;
  std::string as_nonempty_string() const;
  bool as_bool() const;
  /// An integer in the range of int64 (optionally in [low, high]). 3.0 and 1e3 are not integers: write 3 and
  /// 1000.
  std::int64_t as_int64() const;
  std::int64_t as_int64(std::int64_t low, std::int64_t high) const;
  /// Any finite number.
  double as_number() const;
  /// The index of the string in `choices`; the error lists them and suggests the nearest.
  std::size_t as_choice(std::span<const std::string> choices) const;
  std::size_t as_choice(std::initializer_list<std::string_view> choices) const;

  /// The value of an optional member, or the fallback if it is absent. A wrong type is an error.
  std::string string_or(std::string_view key, std::string fallback) const;
  std::int64_t int64_or(std::string_view key, std::int64_t fallback) const;
  bool bool_or(std::string_view key, bool fallback) const;
  double number_or(std::string_view key, double fallback) const;

  /// Refuses members that are not listed, at the pointer of the member: `unexpected key, did you mean
  /// "tunables"?`
  void expect_keys(std::span<const std::string> known) const;
  void expect_keys(std::initializer_list<std::string_view> known) const;

  /// Throws the error for this place.
  [[noreturn]] void fail(std::string cause) const;

 private:
  JsonNode(const nlohmann::ordered_json& value, const JsonNode& parent, std::string key);
  [[noreturn]] void fail_type(std::string_view expected) const;

  const nlohmann::ordered_json* value_;
  std::shared_ptr<const std::string> file_;
  std::string pointer_;
  std::string key_;
};

/// One step of a JSON pointer, escaped: "~" as "~0", "/" as "~1".
std::string escape_pointer_step(std::string_view step);

}  // namespace cubind
