#include "tuner/includes/include_closure.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "base/text.hpp"
#include "tuner/includes/include_scan.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

using Kind = IncludeReference::Kind;

std::string place(std::string_view file, std::size_t line) {
  return std::string(file) + ":" + std::to_string(line);
}

// '/' separated without "." and empty parts; ".." stays at the front only.
std::string normalized(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return join(parts, "/");
}

std::string path_below(std::string_view folder, std::string_view name) {
  return normalized(folder.empty() ? std::string(name) : std::string(folder) + "/" + std::string(name));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool climbs(std::string_view path) { return path == ".." || path.starts_with("../"); }

// The rest of the path below a folder; absent if the path does not lie in it.
std::optional<std::string> below(const std::string& folder, const std::string& path) {
  if (folder.empty()) {
    return climbs(path) ? std::nullopt : std::optional(path);
  }
  return path.starts_with(folder + "/") ? std::optional(path.substr(folder.size() + 1)) : std::nullopt;
}

bool is_absolute(std::string_view name) { return name.starts_with('/'); }

[[noreturn]] void refuse_absolute(std::string_view file, const IncludeReference& reference) {
  throw Error(
      ErrorCode::InvalidArgument, place(file, reference.line),
      "#include of the absolute path " + quoted(reference.name) +
          ": only the spec's own files, its \"headers\" folders and the CUDA toolkit can be included");
}

// The origin of a file. Own files are resolved without a look at the toolkit, so that the artifact key's
// pairs do not depend on one.
enum class World { Own, Toolkit };

struct Visited {
  World world = World::Own;
  std::string name;  // NVRTC's
};

class ClosureBuilder {
 public:
  explicit ClosureBuilder(const IncludeSearch& search) : search_(search) {
    for (const std::string& folder : search.header_folders) {
      folders_.push_back(normalized(folder));
    }
  }

  IncludeClosure build(const std::string& source_path) {
    const std::string path = normalized(source_path);
    std::optional<std::string> content = search_.own(path);
    if (!content) {
      throw Error(ErrorCode::NotFound, source_path, "no such source file");
    }
    source_path_ = path;
    const std::string name = claim_name(path);
    closure_.source = make_file(name, process_own(path, *content));
    follow();
    finish();
    return std::move(closure_);
  }

 private:
  // ---- own files ----

  // The text with every include of an own file spelled by that file's name.
  std::string process_own(const std::string& path, const std::string& content) {
    const IncludeScan scan = scan_includes(content);
    if (scan.trigraph_line != 0) {
      throw Error(ErrorCode::InvalidArgument, place(path, scan.trigraph_line),
                  "the trigraphs ?\?= and ?\?/ are not supported: write # and \\");
    }
    std::string text;
    std::size_t copied = 0;
    for (const IncludeReference& reference : scan.references) {
      refuse_unusable(path, reference);
      const std::optional<std::string> target = find_own(path, reference);
      const std::string name = target ? visit_own(*target) : external_name(reference);
      if (!target) {
        visit_toolkit(name, reference.kind);
      }
      if (name != reference.name) {
        text.append(content, copied, reference.begin - copied).append(name);
        copied = reference.end;
      }
    }
    return text.append(content, copied);
  }

  static void refuse_unusable(const std::string& path, const IncludeReference& reference) {
    const auto refuse = [&](const std::string& cause) {
      throw Error(ErrorCode::InvalidArgument, place(path, reference.line), cause);
    };
    if (reference.kind == Kind::IncludeNext) {
      refuse("#include_next is not supported: name the file");
    }
    if (reference.kind == Kind::Embed) {
      refuse("#embed is not supported: only the spec's source files reach the compiler");
    }
    if (reference.by_macro) {
      const std::string directive = reference.kind == Kind::HasInclude ? "__has_include" : "#include";
      refuse(directive + " by macro " + quoted(reference.name) +
             ": the text of a kernel must name its files; write the name as \"name\" "
             "or <name>");
    }
    if (is_absolute(reference.name)) {
      refuse_absolute(path, reference);
    }
  }

  // The path of the own file that the include names. Throws if the name leaves all folders and nothing else
  // is found.
  std::optional<std::string> find_own(const std::string& from, const IncludeReference& reference) {
    std::vector<std::string> candidates;
    bool leaves = false;
    const auto consider = [&](const std::string& folder) {
      std::string path = path_below(folder, reference.name);
      (is_inside(path) ? candidates.push_back(std::move(path)) : void(leaves = true));
    };
    const std::string beside = folder_of(from);
    if (!reference.angled) {
      consider(beside);
    }
    std::ranges::for_each(folders_, consider);
    if (reference.angled) {
      consider(beside);
    }
    for (const std::string& path : candidates) {
      if (load_own(path) != nullptr) {
        return path;
      }
    }
    if (leaves && climbs(normalized(reference.name))) {
      throw Error(ErrorCode::InvalidArgument, place(from, reference.line),
                  "#include " + quoted(reference.name) +
                      " leaves the spec's folder: list its folder under \"headers\"");
    }
    return std::nullopt;
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

  // ---- the toolkit's files ----

  static std::string external_name(const IncludeReference& reference) {
    const std::string name = normalized(reference.name);
    return climbs(name) ? reference.name : name;
  }

  // The toolkit's header belongs to the closure, if it is there. `__has_include` of an absent one is answered
  // by its absence.
  bool visit_toolkit(const std::string& name, Kind kind) {
    if (toolkit_visited_.contains(name)) {
      return true;
    }
    std::optional<std::string> content;
    if (search_.toolkit && !name.empty() && !climbs(name) && !is_absolute(name)) {
      content = search_.toolkit(name);
    }
    if (!content) {
      if (kind != Kind::HasInclude) {
        absent_.insert(name);
      }
      return false;
    }
    toolkit_visited_.insert(name);
    count(content->size());
    toolkit_to_do_.emplace_back(name, std::move(*content));
    return true;
  }

  std::string process_toolkit(const std::string& name, const std::string& content) {
    std::string text;
    std::size_t copied = 0;
    for (const IncludeReference& reference : scan_includes(content).references) {
      const bool resolvable = reference.kind == Kind::Include || reference.kind == Kind::HasInclude;
      if (!resolvable || reference.by_macro || is_absolute(reference.name)) {
        continue;
      }
      const std::string target = resolve_toolkit(name, reference);
      if (target != reference.name) {
        text.append(content, copied, reference.begin - copied).append(target);
        copied = reference.end;
      }
    }
    return text.append(content, copied);
  }

  std::string resolve_toolkit(const std::string& from, const IncludeReference& reference) {
    const std::string plain = external_name(reference);
    std::string beside = path_below(folder_of(from), reference.name);
    if (!reference.angled && beside != plain && search_.toolkit && !climbs(beside) &&
        (toolkit_visited_.contains(beside) || search_.toolkit(beside).has_value())) {
      visit_toolkit(beside, reference.kind);
      return beside;
    }
    return visit_toolkit(plain, reference.kind) ? plain : reference.name;
  }

  // ---- both ----

  // One file after the other: a chain of includes may be longer than a stack is deep.
  void follow() {
    while (!own_to_do_.empty() || !toolkit_to_do_.empty()) {
      if (!own_to_do_.empty()) {
        const std::string path = std::move(own_to_do_.front());
        own_to_do_.pop_front();
        closure_.own.push_back(make_file(claim_name(path), process_own(path, *load_own(path))));
      } else {
        const auto [name, content] = std::move(toolkit_to_do_.front());
        toolkit_to_do_.pop_front();
        closure_.toolkit.push_back(make_file(name, process_toolkit(name, content)));
      }
    }
  }

  static CompilerFile make_file(const std::string& name, std::string content) {
    const Digest digest = Digest::of(content);
    return {.name = name, .content = std::move(content), .digest = digest};
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
    const auto by_name = [](const CompilerFile& a, const CompilerFile& b) { return a.name < b.name; };
    std::ranges::sort(closure_.own, by_name);
    std::ranges::sort(closure_.toolkit, by_name);
    closure_.absent.assign(absent_.begin(), absent_.end());
    for (const CompilerFile& file : closure_.own) {
      if (toolkit_visited_.contains(file.name)) {
        throw Error(
            ErrorCode::InvalidArgument, file.name,
            "the spec brings a file with the name of a CUDA toolkit header, and its kernel includes both");
      }
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
  std::set<std::string> toolkit_visited_;
  std::deque<std::pair<std::string, std::string>> toolkit_to_do_;  // name, content
  std::set<std::string> absent_;
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
  for (const CompilerFile& file : toolkit) {
    key.begin("header").field("name", file.name).field("digest", file.digest).end();
  }
  return key.digest();
}

IncludeClosure include_closure(const std::string& source_path, const IncludeSearch& search) {
  return ClosureBuilder(search).build(source_path);
}

void refuse_absolute_includes(std::string_view file, std::string_view text) {
  for (const IncludeReference& reference : scan_includes(text).references) {
    if (is_absolute(reference.name)) {
      refuse_absolute(file, reference);
    }
  }
}

}  // namespace cubind
