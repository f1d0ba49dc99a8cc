#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace cubind {

/// A compiled JSON Schema (draft 7, without remote references). Immutable: validate() may be called from
/// several threads at once.
class JsonSchema {
 public:
  /// Throws Internal if the schema itself is not valid: schemas are cubind's own files. `name` is for
  /// messages.
  JsonSchema(std::string_view schema_text, std::string name);
  ~JsonSchema();
  JsonSchema(JsonSchema&&) noexcept;
  JsonSchema& operator=(JsonSchema&&) noexcept;

  /// Throws Error(InvalidArgument) at "FILE POINTER" of the deepest place that violates the schema. Of
  /// several violations at that depth, the error names the first. The error for an unknown key is at the
  /// key's own pointer and names the nearest known key; type, enum and pattern say what would be right,
  /// unless only a combination of schemas (anyOf and the like) could tell.
  void validate(const nlohmann::ordered_json& document, const std::string& file) const;

  /// The errors that validate() would throw for each violation, in the order of the document; empty if there
  /// is none.
  std::vector<Error> violations(const nlohmann::ordered_json& document, const std::string& file) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace cubind
