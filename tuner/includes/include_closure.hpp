#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"

namespace cubind {

/// A file as NVRTC gets it: a memory header or the source. `name` is unique within a closure and says nothing
/// about where the file lies. Every include that resolves to such a file is spelled by its name: NVRTC knows
/// no folders, so
/// `#include "../b.cuh"` in "a/c.cuh" is handed over as `#include "b.cuh"`. Most texts stay as they are.
struct CompilerFile {
  std::string name;
  std::string content;
  Digest digest;  // of content

  bool operator==(const CompilerFile&) const = default;
};

/// The content of a file, absent if there is none. It gets only normalized paths ('/' separated, no "." or
/// empty part, ".." at the front at most), and may get a path several times.
using FileLookup = std::function<std::optional<std::string>(const std::string& path)>;

/// Where the files of a closure come from.
struct IncludeSearch {
  /// The spec's files by their path relative to the spec's folder; those of a headers folder by that folder's
  /// path as listed below, joined with the rest.
  FileLookup own;
  /// The spec's `headers`, in order; relative to the spec's folder, "../common" is fine.
  std::vector<std::string> header_folders;
  /// The toolkit's headers by the name that an #include gives them; never asked for ".." or absolute names.
  /// Empty: none.
  FileLookup toolkit;
};

/// A source with everything that it may include: what NVRTC is handed.
struct IncludeClosure {
  CompilerFile source;
  std::vector<CompilerFile> own;      // sorted by name; without the source unless it is included as well
  std::vector<CompilerFile> toolkit;  // sorted by name; empty without a toolkit
  /// Names that were found nowhere, sorted: all toolkit headers where no toolkit is searched, and files of
  /// other compilers that an #if skips, such as <utility>. NVRTC decides whether one was needed.
  std::vector<std::string> absent;

  /// The artifact key's part for the spec's files: sorted (name, digest) pairs. The same with and without a
  /// toolkit.
  std::vector<std::pair<std::string, Digest>> own_digests() const;
  /// ToolchainIdentity::headers: the digest of the sorted (name, digest) pairs of the toolkit's files.
  Digest toolkit_digest() const;
};

/// The transitive closure of all files that `source_path` (a path for search.own) may include, whatever #if
/// says. A name is searched for relative to the including file, then in the header folders in order (for
/// <name> the folders come first), then in the toolkit. Cycles are fine.
///
/// Throws Error(InvalidArgument) with "FILE:LINE" as the place for an include by macro, #include_next,
/// #embed, a trigraph, an absolute name, and a name that leaves the spec's folder and every header folder; in
/// the toolkit's own files such lines are skipped, for NVRTC will not find the files that they name. NotFound
/// where the source is missing, InvalidArgument where an own file has the name of a toolkit header,
/// ResourceExhausted above 4096 files or 64 MiB.
IncludeClosure include_closure(const std::string& source_path, const IncludeSearch& search);

/// Throws the same Error if a text holds an include by an absolute name. A second check for code that hands
/// foreign texts to NVRTC.
void refuse_absolute_includes(std::string_view file, std::string_view text);

}  // namespace cubind
