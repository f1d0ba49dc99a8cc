// The files of a spec: which ones its sources may include, and their digests.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/key_encoder.hpp"
#include "base/text.hpp"
#include "tuner/includes/include_closure.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/spec_document.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = 64u << 20;
constexpr std::size_t kMaxBundleFiles = 4096;
constexpr std::uint64_t kMaxBundleBytes = 64u << 20;
constexpr std::uint64_t kMaxDataBytes = 32u << 20;  // of arrays, which zstd may not shrink
constexpr std::string_view kTtirSuffix = ".ttir";
constexpr std::uint64_t kMaxTtirBytes = 4u << 20;  // Triton takes 6.5 GB for 78 MB

// The scanner knows sources and lines; here the spec's file and pointer are put before them.
IncludeClosure closure_of(const KernelSpec& spec, const std::string& source, std::string_view pointer,
                          const IncludeSearch& search) {
  const std::string where = spec.file + " " + std::string(pointer);
  try {
    return include_closure(source, search);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::NotFound) {
      throw Error(
          ErrorCode::InvalidArgument, where,
          quoted(source) + " does not exist: it must lie in or below the spec's folder and be readable");
    }
    throw Error(error.code() == ErrorCode::ResourceExhausted ? error.code() : ErrorCode::InvalidArgument,
                where, error.what());
  }
}

SourceDigests digests_of(const IncludeClosure& closure) {
  return {closure.source.digest, closure.own_digests()};
}

std::string reference_pointer(const KernelSpec& spec) {
  return spec.reference.source == spec.source ? "/source" : "/reference/source";
}

constexpr std::size_t kMaxValuesOfDefine = 4096;

// The define with each value of the tunables that it names. Other placeholders stay: no file has such a name.
std::vector<std::string> with_tunables(const KernelSpec& spec, const std::string& define) {
  std::vector<std::string> texts = {define};
  for (const Tunable& tunable : spec.tunables) {
    const std::string placeholder = "{" + tunable.name + "}";
    if (define.find(placeholder) == std::string::npos) {
      continue;
    }
    std::vector<std::string> next;
    for (const std::string& text : texts) {
      for (const std::int64_t value : tunable.values) {
        next.push_back(replaced(text, placeholder, std::to_string(value)));
      }
    }
    texts = std::move(next);
    if (texts.size() > kMaxValuesOfDefine) {
      return {};
    }
  }
  return texts;
}

std::vector<FileMacro> file_macros(const KernelSpec& spec) {
  std::vector<FileMacro> macros;
  for (const std::string& define : spec.defines) {
    if (!file_macro(define)) {
      continue;
    }
    for (const std::string& text : with_tunables(spec, define)) {
      if (auto macro = file_macro(text)) {
        macros.push_back(*std::move(macro));
      }
    }
  }
  return macros;
}

std::string ttir_location(const KernelSpec& spec, const TritonVariant& variant) {
  return spec.file + " /configurations: " + variant.path();
}

void check_ttir(const KernelSpec& spec, const TritonVariant& variant, const std::string& text) {
  if (text.size() > kMaxTtirBytes) {
    throw Error(ErrorCode::InvalidArgument, ttir_location(spec, variant),
                std::to_string(text.size()) + " bytes of TTIR, at most " + std::to_string(kMaxTtirBytes) +
                    " are allowed");
  }
  if (Digest::of(text) != variant.ttir) {
    throw Error(ErrorCode::InvalidArgument, ttir_location(spec, variant),
                "its content has another SHA-256 than its name");
  }
}

// A daemon keeps the files of a bundle in a folder, where another spec among them would be read too.
void refuse_other_files(const KernelSpec& spec, std::set<std::string> named) {
  for (const ArgumentSpec& argument : spec.arguments) {
    named.insert(argument.fill.file);
  }
  for (const SourceFile& file : spec.bundle.files) {
    if (!named.contains(file.path)) {
      throw Error(ErrorCode::InvalidArgument, spec.file + " file " + quoted(file.path),
                  "no configuration and no fill names it: a Triton kernel has no other files");
    }
  }
}

// Each text is looked at once, although configurations may share it.
void add_ttir_digests(KernelSpec& spec, const IncludeSearch& search) {
  std::set<std::string> texts;
  KeyEncoder all("ttir", 1);
  for (const auto& [index, variant] : spec.triton->variants) {
    if (texts.insert(variant.path()).second) {
      const auto text = search.own(variant.path());
      if (!text) {
        throw Error(ErrorCode::InvalidArgument, ttir_location(spec, variant), "the file is missing");
      }
      check_ttir(spec, variant, *text);
    }
    all.field("ttir", variant.ttir);
  }
  refuse_other_files(spec, std::move(texts));
  spec.source_digests.source = all.digest();
}

// Reads each file of data, which so gets into the bundle.
void add_data(KernelSpec& spec, const IncludeSearch& search) {
  std::uint64_t bytes = 0;
  for (ArgumentSpec& argument : spec.arguments) {
    if (argument.fill.kind != Fill::Kind::File) {
      continue;
    }
    const std::string where = spec.file + " /arguments/" + argument.name + "/fill/npy";
    const auto text = search.own(argument.fill.file);
    if (!text) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "there is no " + quoted(argument.fill.file) + " in the spec's folder");
    }
    if (bytes += text->size(); bytes > kMaxDataBytes) {
      throw Error(ErrorCode::ResourceExhausted, where, "the arrays of a kernel have at most 32 MiB");
    }
    const NpyArray array = read_npy(*text, where + " (" + argument.fill.file + ")");
    argument.fill.in_memory = !array.memory.empty();
    argument.fill.content = argument.fill.in_memory ? array.memory_digest : Digest::of(*text);
  }
}

void add_digests(KernelSpec& spec, IncludeSearch search) {
  add_data(spec, search);
  if (spec.triton) {
    return add_ttir_digests(spec, search);
  }
  search.macros = file_macros(spec);
  spec.source_digests = digests_of(closure_of(spec, spec.source, "/source", search));
  if (spec.reference.kind == ReferenceSpec::Kind::Kernel) {
    search.macros.clear();  // its compile has none of the spec's defines
    spec.reference_digests =
        digests_of(closure_of(spec, spec.reference.source, reference_pointer(spec), search));
  }
}

bool in_headers_folder(const KernelSpec& spec, const std::string& path) {
  return std::ranges::any_of(spec.headers, [&](const std::string& folder) {
    return folder == "." || path.starts_with(folder + "/");
  });
}

void check_bundle(const KernelSpec& spec, const SpecBundle& bundle) {
  std::uint64_t bytes = 0;
  if (bundle.files.size() > kMaxBundleFiles) {
    throw Error(ErrorCode::ResourceExhausted, spec.file,
                std::to_string(bundle.files.size()) + " files, at most 4096 are allowed");
  }
  for (std::size_t i = 0; i < bundle.files.size(); ++i) {
    const std::string& path = bundle.files[i].path;
    const fs::path parsed(path);
    const std::string where = spec.file + " file " + quoted(path);
    if (path.empty() || parsed.is_absolute() || parsed.lexically_normal().generic_string() != path) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "a path is relative to the spec's folder and normalized");
    }
    if ((path == ".." || path.starts_with("../")) && !in_headers_folder(spec, path)) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "it lies outside of the spec's folder and in none of /headers");
    }
    if (i > 0 && bundle.files[i - 1].path == path) {
      throw Error(ErrorCode::InvalidArgument, where, "it is given twice");
    }
    bytes += bundle.files[i].content.size();
  }
  if (bytes > kMaxBundleBytes) {
    throw Error(ErrorCode::ResourceExhausted, spec.file, "its files have more than 64 MiB");
  }
}

IncludeSearch bundle_search(const SpecBundle& bundle, std::vector<std::string> headers) {
  const auto own = [&bundle](const std::string& path) -> std::optional<std::string> {
    const auto found = std::ranges::lower_bound(bundle.files, path, {}, &SourceFile::path);
    if (found == bundle.files.end() || found->path != path) {
      return std::nullopt;
    }
    return found->content;
  };
  return {.own = own, .header_folders = std::move(headers)};
}

// Reads what the closure asks for and remembers what it found.
class FolderReader {
 public:
  FolderReader(fs::path folder, const SourceFolders& folders, const OnLook& on_look)
      : folder_(std::move(folder)), folders_(folders), on_look_(on_look) {}

  // A text of TTIR is named by its content: once it was read, it is not looked at again.
  std::optional<std::string> read(const std::string& path) {
    if (const auto known = files_.find(path); known != files_.end()) {
      return known->second;
    }
    const fs::path full = folder_ / path;
    if (on_look_ && !path.ends_with(kTtirSuffix)) {
      on_look_(full);
    }
    auto content = folders_.read(full, kMaxFileBytes);
    if (!content) {
      return std::nullopt;
    }
    return files_.emplace(path, std::move(*content)).first->second;
  }

  std::vector<SourceFile> files() const {
    std::vector<SourceFile> files;
    for (const auto& [path, content] : files_) {
      files.push_back({path, content});
    }
    return files;
  }

 private:
  fs::path folder_;
  const SourceFolders& folders_;
  const OnLook& on_look_;
  std::map<std::string, std::string> files_;  // sorted by path, as a bundle is
};

/// Checks the names alone: whether the folders exist is not revealed.
void require_headers_within(const KernelSpec& spec, const SourceFolders& folders) {
  std::error_code failed;
  const fs::path beside = fs::canonical(fs::path(spec.file).parent_path(), failed);
  for (std::size_t i = 0; i < spec.headers.size(); ++i) {
    if (const fs::path folder = beside / spec.headers[i]; !folders.hold(folder)) {
      throw Error(ErrorCode::InvalidArgument, spec.file + " /headers/" + std::to_string(i),
                  quoted(spec.headers[i]) +
                      " leads out of the folder of its kernels: start the daemon with --headers " +
                      folder.lexically_normal().string() + " to allow it");
    }
  }
}

}  // namespace

IncludeSearch include_search(const KernelSpec& spec) {
  IncludeSearch search = bundle_search(spec.bundle, spec.headers);
  search.macros = file_macros(spec);
  return search;
}

std::shared_ptr<const KernelSpec> parse_kernel_spec(SpecBundle bundle) {
  auto spec = std::make_shared<KernelSpec>(read_spec_document(bundle.spec_json, bundle.file));
  std::ranges::sort(bundle.files, {}, &SourceFile::path);
  check_bundle(*spec, bundle);
  spec->bundle = std::move(bundle);
  add_digests(*spec, bundle_search(spec->bundle, spec->headers));
  return spec;
}

std::shared_ptr<const KernelSpec> load_kernel_spec(const std::string& path, const OnLook& on_look,
                                                   const SourceFolders& folders) {
  if (on_look) {
    on_look(path);
  }
  auto text = folders.read(path, kMaxFileBytes);
  if (!text) {
    throw Error(ErrorCode::NotFound, path,
                "there is no such file, it cannot be read, or it is a link that leads out of the folder of "
                "its kernels");
  }
  auto spec = std::make_shared<KernelSpec>(read_spec_document(*text, path));
  require_headers_within(*spec, folders);
  FolderReader reader(fs::path(path).parent_path(), folders, on_look);
  const auto own = [&reader](const std::string& name) { return reader.read(name); };
  add_digests(*spec, {.own = own, .header_folders = spec->headers});
  spec->bundle = {path, std::move(*text), reader.files()};
  check_bundle(*spec, spec->bundle);
  return spec;
}

}  // namespace cubind
