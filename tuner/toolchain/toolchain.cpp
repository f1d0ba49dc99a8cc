#include "tuner/toolchain/toolchain.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNvrtcPrefix = "libnvrtc.so.";
constexpr std::string_view kBuiltinsPrefix = "libnvrtc-builtins.so.";
constexpr std::uint32_t kOldestMajor = 12;

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

// "13" or "13.0"; longer ones ("13.0.88") are the targets of links that are seen as well.
std::optional<Version> parse_version(std::string_view text) {
  Version version;
  const char* end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, version.major);
  if (result.ec == std::errc{} && result.ptr != end && *result.ptr == '.') {
    result = std::from_chars(result.ptr + 1, end, version.minor);
  }
  return result.ec == std::errc{} && result.ptr == end ? std::optional(version) : std::nullopt;
}

// The libraries of one folder that belong together.
struct LibraryPair {
  fs::path nvrtc, builtins;
  Version version;
};

std::vector<LibraryPair> libraries_in(const fs::path& folder) {
  std::map<std::uint32_t, fs::path> nvrtc;                               // by major version
  std::map<std::uint32_t, std::pair<std::uint32_t, fs::path>> builtins;  // by major, the newest minor
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kNvrtcPrefix)) {
      const auto version = parse_version(std::string_view(name).substr(kNvrtcPrefix.size()));
      // "libnvrtc.so.13" before "libnvrtc.so.13.0": the name that every layout has.
      if (version && (!nvrtc.contains(version->major) ||
                      name.size() < nvrtc[version->major].filename().string().size())) {
        nvrtc[version->major] = entry->path();
      }
    } else if (name.starts_with(kBuiltinsPrefix)) {
      const auto version = parse_version(std::string_view(name).substr(kBuiltinsPrefix.size()));
      if (version &&
          (!builtins.contains(version->major) || builtins[version->major].first <= version->minor)) {
        builtins[version->major] = {version->minor, entry->path()};
      }
    }
  }
  std::vector<LibraryPair> pairs;
  for (const auto& [major, path] : nvrtc) {
    if (const auto found = builtins.find(major); found != builtins.end() && major >= kOldestMajor) {
      pairs.push_back({path, found->second.second, {major, found->second.first}});
    }
  }
  return pairs;
}

class Finder {
 public:
  Finder(const ToolchainSearch& search, FileDigests& digests) : search_(search), digests_(digests) {}

  ToolchainsFound run() {
    for (const char* variable : {"CUBIND_CUDA_HOME", "CUDA_HOME"}) {
      const char* home = search_.environment ? search_.environment(variable) : nullptr;
      if (home != nullptr && *home != '\0') {
        look_into_home(home, std::string(variable) + "=" + home);
      } else {
        found_.tried.push_back(std::string(variable) + ": not set");
      }
    }
    look_into_homes(search_.toolkit_folders);
    for (const fs::path& folder : search_.site_packages) {
      look_into_packages(folder);
    }
    if (search_.site_packages.empty()) {
      found_.tried.emplace_back(
          "Python wheels: no folder of packages belongs to VIRTUAL_ENV, python3 or HOME");
    }
    look_into_homes(search_.install_folders);
    if (found_.toolchains.empty()) {
      look_into_homes(search_.fallback_folders);
    }
    const auto newer = [](const Toolchain& a, const Toolchain& b) {
      return a.major != b.major ? a.major > b.major : a.minor > b.minor;
    };
    std::ranges::stable_sort(found_.toolchains, newer);
    return std::move(found_);
  }

 private:
  void look_into_homes(const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
      look_into_home(folder, folder.string());
    }
  }

  void look_into_home(const fs::path& home, const std::string& label) {
    look(label,
         {home / "lib64", home / "lib", home / "targets/x86_64-linux/lib", home / "targets/sbsa-linux/lib"},
         {home / "include", home / "include/cccl", home / "targets/x86_64-linux/include",
          home / "targets/x86_64-linux/include/cccl", home / "targets/sbsa-linux/include"});
  }

  // The wheels of CUDA 13 share the folder nvidia/cu13, those of CUDA 12 have one folder each.
  void look_into_packages(const fs::path& packages) {
    std::error_code error;
    const fs::path nvidia = packages / "nvidia";
    const bool any = fs::is_directory(nvidia / "cu14", error) || fs::is_directory(nvidia / "cu13", error) ||
                     fs::is_directory(nvidia / "cuda_nvrtc", error);
    if (!any) {
      found_.tried.push_back(packages.string() + ": no Python wheel nvidia-cuda-nvrtc");
    }
    for (const char* folder : {"cu14", "cu13"}) {
      if (fs::is_directory(nvidia / folder, error)) {
        look((nvidia / folder).string(), {nvidia / folder / "lib"},
             {nvidia / folder / "include", nvidia / folder / "include/cccl"});
      }
    }
    if (fs::is_directory(nvidia / "cuda_nvrtc", error)) {
      look((nvidia / "cuda_nvrtc").string(), {nvidia / "cuda_nvrtc/lib"},
           {nvidia / "cuda_runtime/include", nvidia / "cuda_nvcc/include", nvidia / "cuda_cccl/include"});
    }
  }

  void look(const std::string& label, const std::vector<fs::path>& library_folders,
            const std::vector<fs::path>& include_folders) {
    bool any = false;
    for (const fs::path& folder : library_folders) {
      for (const LibraryPair& pair : libraries_in(folder)) {
        any = true;
        add(label, pair, include_folders);
      }
    }
    if (!any) {
      found_.tried.push_back(label +
                             ": no libnvrtc.so.12 or later with its libnvrtc-builtins next to it in " +
                             library_folders.front().string() + " and its like");
    }
  }

  void add(const std::string& label, const LibraryPair& pair, const std::vector<fs::path>& include_folders) {
    try {
      Toolchain toolchain;
      toolchain.nvrtc = canonical_path(pair.nvrtc);
      toolchain.builtins = canonical_path(pair.builtins);
      toolchain.major = pair.version.major;
      toolchain.minor = pair.version.minor;
      toolchain.nvrtc_digest = digests_.of(toolchain.nvrtc);
      toolchain.builtins_digest = digests_.of(toolchain.builtins);
      toolchain.found_in = label;
      for (const fs::path& folder : include_folders) {
        std::error_code error;
        if (fs::is_directory(folder, error)) {
          toolchain.include_folders.push_back(folder);
        }
      }
      if (Toolchain* known = find_known(toolchain)) {
        add_missing_headers(*known, toolchain);
      } else {
        found_.toolchains.push_back(std::move(toolchain));
      }
      found_.tried.push_back(label + ": nvrtc " + std::to_string(pair.version.major) + "." +
                             std::to_string(pair.version.minor));
    } catch (const Error& error) {
      found_.tried.push_back(label + ": " + error.what());
    }
  }

  // A toolchain may be found twice, by /usr/local/cuda and CUDA_HOME for example.
  Toolchain* find_known(const Toolchain& toolchain) {
    const auto found = std::ranges::find_if(found_.toolchains, [&](const Toolchain& other) {
      return other.nvrtc_digest == toolchain.nvrtc_digest &&
             other.builtins_digest == toolchain.builtins_digest;
    });
    return found == found_.toolchains.end() ? nullptr : &*found;
  }

  // The NVRTC wheel alone brings no headers; the same one in a toolkit does.
  static void add_missing_headers(Toolchain& known, const Toolchain& other) {
    if (known.include_folders.empty()) {
      known.include_folders = other.include_folders;
    }
  }

  const ToolchainSearch& search_;
  FileDigests& digests_;
  ToolchainsFound found_;
};

}  // namespace

std::string Toolchain::name() const { return "nvrtc " + std::to_string(major) + "." + std::to_string(minor); }

std::optional<std::string> Toolchain::read_header(const std::string& header) const {
  for (const fs::path& folder : include_folders) {
    std::error_code error;
    // One that may not be read counts as absent: its existence is not revealed.
    if (const fs::path file = folder / header;
        fs::is_regular_file(file, error) && ::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) == 0) {
      return read_file(file, std::uint64_t{64} << 20);
    }
  }
  return std::nullopt;
}

std::vector<std::string> Toolchain::headers_below(const std::string& folder) const {
  std::vector<std::string> names;
  for (const fs::path& root : include_folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(root / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->is_regular_file(error)) {
        names.push_back(entry->path().lexically_relative(root).generic_string());
      }
    }
    if (!names.empty()) {
      break;
    }
  }
  return names;
}

ToolchainsFound find_toolchains(const ToolchainSearch& search, FileDigests& digests) {
  return Finder(search, digests).run();
}

}  // namespace cubind
