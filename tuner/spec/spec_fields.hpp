// The common helpers of the spec parser: names, expressions, paths, limits. Every error is an
// Error(InvalidArgument) at the node's file and pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_node.hpp"
#include "plan/expr/expression.hpp"

namespace cubind {

/// Beyond these a spec is refused: they bound what one spec may cost the daemon.
struct SpecLimits {
  static constexpr std::size_t kBytes = 1u << 20;  // of the JSON text
  static constexpr std::size_t kDims = 16;
  static constexpr std::size_t kTypes = 8;
  static constexpr std::size_t kTypeChoices = 10;
  static constexpr std::size_t kFlags = 16;
  static constexpr std::size_t kTunables = 32;
  static constexpr std::size_t kTunableValues = 256;
  static constexpr unsigned kSpaceBits = 62;  // 2^62 configurations before constraints
  static constexpr std::size_t kConstraints = 256;
  static constexpr std::size_t kDefaults = 64;
  static constexpr std::size_t kArguments = 64;
  static constexpr std::size_t kLaunches = 16;
  static constexpr std::size_t kShapeAxes = 8;
  static constexpr std::size_t kEdges = 64;
  static constexpr std::size_t kNameLength = 64;
  static constexpr std::size_t kEntryLength = 1024;
  static constexpr std::size_t kExpressionLength = 1024;
  static constexpr std::size_t kListed = 64;  // options, defines, headers
};

/// The names that an expression may use, by the time of its evaluation.
struct SpecScopes {
  SymbolTable problem;    // dims, flags, sizeof of the types
  SymbolTable reference;  // and the device constants
  SymbolTable launch;     // and the tunables: constraints, grids, blocks
};

/// The member's key as a name: an identifier, not too long, and, where expressions use it, none of their own
/// words.
std::string read_name(const JsonNode& member, bool in_expressions = true);

/// The limits of an expression in a spec.
ExpressionLimits expression_limits();

/// An expression over `symbols`, or an integer. artifact.* is refused as not supported yet.
std::string read_expression(const JsonNode& node, const SymbolTable& symbols);

/// One to `most` expressions: the axes of a grid or a block, or of a buffer.
std::vector<std::string> read_axes(const JsonNode& node, const SymbolTable& symbols, std::size_t most = 3);

/// A path below the spec's folder: relative, '/' separated, no "." or ".." or empty part.
std::string read_path(const JsonNode& node);

/// A folder relative to the spec's, normalized: ".." at the front at most.
std::string read_folder(const JsonNode& node);

/// The elements of an array, the members of an object; refuses more than `most` items and fewer than `least`.
std::vector<JsonNode> elements_of(const JsonNode& node, std::size_t most, std::string_view what,
                                  std::size_t least = 1);
std::vector<JsonNode> members_of(const JsonNode& node, std::size_t most, std::string_view what);

/// Refuses /scenario and /scenarios, and says what to do instead.
void refuse_scenarios(const JsonNode& object);

}  // namespace cubind
