#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "tuner/includes/compiler_file.hpp"
#include "tuner/includes/include_scan.hpp"
#include "tuner/includes/toolkit_headers.hpp"

namespace cubind {

/// Where the files of a closure come from.
struct IncludeSearch {
  /// The spec's files by their path relative to the spec's folder; those of a headers folder by that folder's
  /// path as listed below, joined with the rest.
  FileLookup own;
  /// The spec's `headers`, in order; relative to the spec's folder, "../common" is fine.
  std::vector<std::string> header_folders;
  /// The toolkit's headers. With them come the stand-ins. Null: neither.
  ToolkitHeaders* toolkit = nullptr;
  /// The macros of the spec's `defines` that may name a file, with each value that a configuration may give
  /// them.
  std::vector<FileMacro> macros = {};
};

/// A source with everything that it may include: what NVRTC is handed.
struct IncludeClosure {
  CompilerFile source;
  std::vector<CompilerFile> own;    // sorted by name; without the source unless it is included as well
  std::vector<SharedFile> toolkit;  // sorted by name, with the stand-ins; empty without a toolkit

  /// The artifact key's part for the spec's files: sorted (name, digest) pairs. The same with and without a
  /// toolkit.
  std::vector<std::pair<std::string, Digest>> own_digests() const;
  /// ToolchainIdentity::headers: the digest of the sorted (name, digest) pairs of `toolkit`.
  Digest toolkit_digest() const;
};

/// All files that `source_path` (a path for search.own) may include, whatever #if says, and those that they
/// may include. A name is searched for relative to the including file, then in the header folders in order
/// (for <name> the folders come first), then among the stand-ins, then in the toolkit. Cycles are fine. Names
/// that are found nowhere are no error: NVRTC decides whether the file was needed.
///
/// An include by macro names every file that a `#define` of the own files or `search.macros` may mean. Where
/// what a toolkit header includes depends on macros, the whole package of that header belongs to the closure.
/// #include_next, #embed, absolute names, and names that leave the spec's folder and every header folder are
/// not looked for; an absolute name is handed over as one that no machine has.
///
/// Throws Error(InvalidArgument) with "FILE:LINE" as the place for a trigraph. NotFound where the source is
/// missing, InvalidArgument where an own file has the name of a header of the toolkit that is used as well,
/// or where one name in a macro means two files; ResourceExhausted above 4096 files or 64 MiB.
IncludeClosure include_closure(const std::string& source_path, const IncludeSearch& search);

/// Throws the same Error if a text holds an include by an absolute name. A second check for code that hands
/// foreign texts to NVRTC.
void refuse_absolute_includes(std::string_view file, std::string_view text);

}  // namespace cubind
