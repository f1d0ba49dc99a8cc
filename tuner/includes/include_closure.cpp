#include "tuner/includes/include_closure.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "base/text.hpp"
#include "tuner/includes/include_path.hpp"
#include "tuner/includes/stand_ins.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

using Kind = IncludeReference::Kind;

std::string location(std::string_view file, std::size_t line) {
  return std::string(file) + ":" + std::to_string(line);
}

[[noreturn]] void refuse_absolute(std::string_view file, const IncludeReference& reference) {
  throw Error(
      ErrorCode::InvalidArgument, location(file, reference.line),
      "#include of the absolute path " + quoted(reference.name) +
          ": only the spec's own files, its \"headers\" folders and the CUDA toolkit can be included");
}

// An include by macro of an own file.
struct MacroReference {
  std::string path;
  IncludeReference include;
};

class ClosureBuilder {
 public:
  explicit ClosureBuilder(const IncludeSearch& search) : search_(search) {
    for (const std::string& folder : search.header_folders) {
      folders_.push_back(normalized_path(folder));
    }
  }

  IncludeClosure build(const std::string& source_path) {
    const std::string path = normalized_path(source_path);
    std::optional<std::string> content = search_.own(path);
    if (!content) {
      throw Error(ErrorCode::NotFound, source_path, "no such source file");
    }
    source_path_ = path;
    const std::string name = claim_name(path);
    closure_.source = CompilerFile::of(name, process_own(path, *content));
    follow();
    resolve_macros();
    finish();
    return std::move(closure_);
  }

 private:
  // ---- own files ----

  // The text with every include of an own file spelled by that file's name.
  std::string process_own(const std::string& path, const std::string& content) {
    IncludeScan scan = scan_includes(content);
    if (scan.trigraph_line != 0) {
      throw Error(ErrorCode::InvalidArgument, location(path, scan.trigraph_line),
                  "the trigraphs ?\?= and ?\?/ are not supported: write # and \\");
    }
    macros_.insert(macros_.end(), scan.macros.begin(), scan.macros.end());
    std::string text;
    std::size_t copied = 0;
    for (const IncludeReference& reference : scan.references) {
      if (reference.by_macro) {
        by_macro_.push_back({path, reference});
        continue;
      }
      const std::string name = visit(path, reference);
      if (name != reference.name) {
        text.append(content, copied, reference.begin - copied).append(name);
        copied = reference.end;
      }
    }
    return text.append(content, copied);
  }

  // The file that an own file's include names belongs to the closure, if there is one; the name that it has
  // for NVRTC.
  std::string visit(const std::string& from, const IncludeReference& reference) {
    const bool searched = reference.kind == Kind::Include || reference.kind == Kind::HasInclude;
    if (searched && !is_absolute(reference.name)) {
      if (const std::optional<std::string> target = find_own(from, reference)) {
        return visit_own(*target);
      }
      visit_external(external_name(reference.name));
    }
    return external_name(reference.name);
  }

  // The path of the own file that the include names.
  std::optional<std::string> find_own(const std::string& from, const IncludeReference& reference) {
    std::vector<std::string> candidates;
    const auto consider = [&](const std::string& folder) {
      if (std::string path = path_below(folder, reference.name); is_inside(path)) {
        candidates.push_back(std::move(path));
      }
    };
    const std::string beside = folder_of(from);
    if (!reference.angled) {
      consider(beside);
    }
    std::ranges::for_each(folders_, consider);
    if (reference.angled) {
      consider(beside);
    }
    const auto found =
        std::ranges::find_if(candidates, [&](const std::string& path) { return load_own(path) != nullptr; });
    return found == candidates.end() ? std::nullopt : std::optional(*found);
  }

  bool is_inside(const std::string& path) const {
    return !climbs(path) || std::ranges::any_of(folders_, [&](const std::string& folder) {
      return below(folder, path).has_value();
    });
  }

  const std::string* load_own(const std::string& path) {
    auto [entry, fresh] = own_content_.try_emplace(path);
    if (fresh) {
      entry->second = search_.own(path);
    }
    return entry->second ? &*entry->second : nullptr;
  }

  // The file belongs to the closure; the name that it has for NVRTC.
  std::string visit_own(const std::string& path) {
    if (own_visited_.insert(path).second) {
      count(load_own(path)->size());
      own_to_do_.push_back(path);
    }
    return claim_name(path);
  }

  // A file of a headers folder is called by its path below that folder, so that a folder may move; another
  // one with the same name gets a folder in front that no one can have written.
  std::string claim_name(const std::string& path) {
    if (const auto known = own_names_.find(path); known != own_names_.end()) {
      return known->second;
    }
    std::string name = path;
    if (path != source_path_) {
      for (const std::string& folder : folders_) {
        if (const auto rest = below(folder, path)) {
          name = *rest;
          break;
        }
      }
    }
    std::string unique = name;
    for (int number = 2; taken_.contains(unique); ++number) {
      unique = "(" + std::to_string(number) + ")/" + name;
    }
    taken_.insert(unique);
    own_names_.emplace(path, unique);
    return unique;
  }

  // ---- includes by macro ----

  // Each file that a macro may mean belongs to the closure. Files that come so may define and use others.
  void resolve_macros() {
    macros_.insert(macros_.end(), search_.macros.begin(), search_.macros.end());
    for (std::size_t done = 0; done != by_macro_.size() + macros_.size();) {
      done = by_macro_.size() + macros_.size();
      const std::vector<MacroReference> references = by_macro_;
      for (const MacroReference& reference : references) {
        for (const std::string& value : values_of(reference.include)) {
          visit_value(reference, value);
        }
      }
      follow();
    }
  }

  // "name" and <name>, with their quotes.
  std::set<std::string> values_of(const IncludeReference& macro) const {
    std::set<std::string> values;
    std::set<std::string> seen = {macro.name};
    for (std::vector<std::string> to_do = {macro.name}; !to_do.empty();) {
      const std::string name = std::move(to_do.back());
      to_do.pop_back();
      for (const FileMacro& one : macros_) {
        const bool is_file = one.value.starts_with('"') || one.value.starts_with('<');
        if (one.name == name && is_file) {
          values.insert(one.value_for(macro.argument));
        } else if (one.name == name && seen.insert(one.value).second) {
          to_do.push_back(one.value);
        }
      }
    }
    return values;
  }

  // NVRTC will look for the name that the macro gives. If the file has another one, a header of that name
  // includes it.
  void visit_value(const MacroReference& from, const std::string& value) {
    IncludeReference reference = from.include;
    reference.angled = value.starts_with('<');
    reference.name = value.substr(1, value.size() - 2);
    const std::string name = visit(from.path, reference);
    if (name == reference.name || is_absolute(reference.name)) {
      return;
    }
    const auto [alias, fresh] = aliases_.emplace(reference.name, name);
    if (alias->second != name || (fresh && taken_.contains(reference.name))) {
      throw Error(ErrorCode::InvalidArgument, location(from.path, reference.line),
                  "the include by macro " + quoted(from.include.name) + " names " + quoted(reference.name) +
                      ", which means different files in different folders: define it as the path from the "
                      "spec's folder or from one of its \"headers\"");
    }
    if (fresh) {
      taken_.insert(reference.name);
      closure_.own.push_back(CompilerFile::of(reference.name, "#include \"" + name + "\"\n"));
    }
  }

  // ---- the toolkit's files and stand-ins ----

  // From an own file or a stand-in: the stand-in of that name goes before the toolkit's file.
  void visit_external(const std::string& name) {
    if (search_.toolkit == nullptr) {
      return;
    }
    if (const ToolkitHeader* stand_in = find_stand_in(name)) {
      add_external(name, stand_in);
    } else {
      visit_toolkit(name);
    }
  }

  void visit_toolkit(const std::string& name) {
    if (external_.contains(name)) {
      return;
    }
    if (const ToolkitHeader* header = search_.toolkit->find(name)) {
      add_external(name, header);
    }
  }

  void add_external(const std::string& name, const ToolkitHeader* header) {
    const ToolkitHeader*& entry = external_[name];
    if (entry == header) {
      return;
    }
    entry = header;
    count(header->file->content.size());
    external_to_do_.push_back(header);
  }

  void follow_external(const ToolkitHeader& header) {
    const bool is_stand_in = find_stand_in(header.file->name) == &header;
    for (const std::string& name : header.includes) {
      is_stand_in ? visit_external(name) : visit_toolkit(name);
    }
    if (header.by_macro) {
      has_package_ = true;
      for (const std::string& name : search_.toolkit->package_of(header.file->name)) {
        visit_toolkit(name);
      }
    }
  }

  // A package that is handed over as a whole was not written for NVRTC in all its parts. Other headers of the
  // toolkit include the standard library where NVRTC does not look.
  void add_stand_ins_of_package() {
    const std::map<std::string, const ToolkitHeader*> headers = external_;
    for (const auto& [from, header] : headers) {
      for (const std::string& name : header->includes) {
        if (!external_.contains(name)) {
          visit_external(name);
        }
      }
    }
  }

  // ---- both ----

  // One file after the other: a chain of includes may be longer than a stack is deep.
  void follow() {
    while (!own_to_do_.empty() || !external_to_do_.empty()) {
      if (!own_to_do_.empty()) {
        const std::string path = std::move(own_to_do_.front());
        own_to_do_.pop_front();
        closure_.own.push_back(CompilerFile::of(claim_name(path), process_own(path, *load_own(path))));
      } else {
        const ToolkitHeader* header = external_to_do_.front();
        external_to_do_.pop_front();
        follow_external(*header);
      }
    }
  }

  void count(std::size_t bytes) {
    bytes_ += bytes;
    if (++files_ > kMaxFiles || bytes_ > kMaxBytes) {
      throw Error(ErrorCode::ResourceExhausted, source_path_,
                  "its includes are more than " + std::to_string(kMaxFiles) + " files or " +
                      std::to_string(kMaxBytes >> 20) + " MiB");
    }
  }

  void finish() {
    if (has_package_) {
      add_stand_ins_of_package();
      follow();
    }
    std::ranges::sort(closure_.own, {}, &CompilerFile::name);
    for (const CompilerFile& file : closure_.own) {
      // A spec may bring a CCCL of its own, which replaces that of the toolkit.
      if (external_.contains(file.name) && !is_of_cccl(file.name)) {
        throw Error(
            ErrorCode::InvalidArgument, file.name,
            "the spec brings a file with the name of a CUDA toolkit header, and its kernel includes both");
      }
      external_.erase(file.name);
    }
    for (const auto& [name, header] : external_) {
      closure_.toolkit.push_back(header->file);
    }
  }

  const IncludeSearch& search_;
  std::vector<std::string> folders_;
  std::string source_path_;
  IncludeClosure closure_;
  std::map<std::string, std::optional<std::string>> own_content_;
  std::map<std::string, std::string> own_names_;  // path to name
  std::set<std::string> own_visited_;             // paths
  std::deque<std::string> own_to_do_;             // paths
  std::set<std::string> taken_;                   // names
  std::vector<FileMacro> macros_;
  std::vector<MacroReference> by_macro_;
  std::map<std::string, std::string> aliases_;            // names that NVRTC knows from macros only
  std::map<std::string, const ToolkitHeader*> external_;  // by name
  std::deque<const ToolkitHeader*> external_to_do_;
  bool has_package_ = false;
  std::size_t files_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, Digest>> IncludeClosure::own_digests() const {
  std::vector<std::pair<std::string, Digest>> pairs;
  for (const CompilerFile& file : own) {
    pairs.emplace_back(file.name, file.digest);
  }
  return pairs;
}

Digest IncludeClosure::toolkit_digest() const {
  KeyEncoder key("toolkit_headers", 1);
  key.list("headers", toolkit.size());
  for (const SharedFile& file : toolkit) {
    key.begin("header").field("name", file->name).field("digest", file->digest).end();
  }
  return key.digest();
}

IncludeClosure include_closure(const std::string& source_path, const IncludeSearch& search) {
  return ClosureBuilder(search).build(source_path);
}

void refuse_absolute_includes(std::string_view file, std::string_view text) {
  // Scanning 20 MB takes a while.
  static constexpr auto kBefore = std::to_array<std::string_view>({"\"/", "</", "\"\\", "<\\"});
  if (std::ranges::none_of(kBefore, [&](std::string_view part) { return text.find(part) != text.npos; })) {
    return;
  }
  for (const IncludeReference& reference : scan_includes(text).references) {
    if (is_absolute(reference.name)) {
      refuse_absolute(file, reference);
    }
  }
}

}  // namespace cubind
