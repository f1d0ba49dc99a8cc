#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// One place in a source text that makes the preprocessor look for a file.
struct IncludeReference {
  enum class Kind {
    Include,      // #include
    IncludeNext,  // #include_next
    Embed,        // #embed
    HasInclude,   // __has_include( ) in a directive
  };
  Kind kind = Kind::Include;
  std::string name;       // as the preprocessor reads it, without quotes; of a macro its first token
  std::string argument;   // of a macro with one parameter
  bool angled = false;    // <name>, else "name"
  bool by_macro = false;  // neither: what it names depends on macros
  std::size_t line = 0;   // from 1
  std::size_t begin = 0;  // bytes [begin, end) hold the name without its quotes
  std::size_t end = 0;

  bool operator==(const IncludeReference&) const = default;
};

/// What an include by macro may mean: `#define NAME "file"`, `#define NAME <file>`, `#define NAME OTHER` or
/// `#define NAME(PARAMETER) <folder/PARAMETER>`.
struct FileMacro {
  std::string name;
  std::string value;      // with its quotes or brackets; else the other macro's name
  std::string parameter;  // empty: none

  /// The value, with this for the parameter.
  std::string value_for(const std::string& argument) const;

  bool operator==(const FileMacro&) const = default;
};

/// What scan_includes() finds in a text.
struct IncludeScan {
  std::vector<IncludeReference> references;  // in the order of the text
  std::vector<FileMacro> macros;             // in the order of the text, whatever #undef says
  /// The first line with a trigraph ??= or ??/, which NVRTC reads as a preprocessor would in some dialects
  /// only; 0: none.
  std::size_t trigraph_line = 0;
};

/// Finds every reference and ignores #if: groups that would be skipped count. Knows comments, string,
/// character and raw string literals, digit separators, line continuations and the digraph %:. In a malformed
/// text it may find too much. NVRTC sees only the files that were found, and reports missing ones.
IncludeScan scan_includes(std::string_view text);

/// The macro that NVRTC defines for an option `--define-macro=DEFINE`, with DEFINE "NAME=VALUE"; absent if
/// the value names neither a file nor another macro.
std::optional<FileMacro> file_macro(std::string_view define);

}  // namespace cubind
