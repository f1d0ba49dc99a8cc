#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"

namespace cubind {

/// One NVRTC installation. Nothing is loaded in this process: the version is read from the file names, and a
/// compile worker, which loads it, reports in its hello what NVRTC itself says.
struct Toolchain {
  std::filesystem::path nvrtc;     // libnvrtc.so.13, absolute, symbolic links resolved
  std::filesystem::path builtins;  // libnvrtc-builtins.so.13.0 of the same folder
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  Digest nvrtc_digest;
  Digest builtins_digest;
  std::vector<std::filesystem::path>
      include_folders;   // searched in this order for the toolkit's headers; may be empty
  std::string found_in;  // "CUDA_HOME=/usr/local/cuda", for messages

  std::string name() const;  // "nvrtc 13.0"

  /// Content of a toolkit header by the name that an #include gives it; absent if there is none.
  std::optional<std::string> read_header(const std::string& header) const;
  /// The names of all headers in and below a folder such as "cub": of the first include folder that has it.
  std::vector<std::string> headers_below(const std::string& folder) const;
};

/// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* variable)>;

/// Where installations are looked for. The defaults are the process's.
struct ToolchainSearch {
  Environment environment;                             // default: getenv
  std::vector<std::filesystem::path> toolkit_folders;  // default: /usr/local/cuda
  std::vector<std::filesystem::path> site_packages;    // default: those of VIRTUAL_ENV and python3 on PATH
  std::vector<std::filesystem::path> install_folders;  // default: <folder of the executable>/../cuda
  /// Searched only if none of the above has an NVRTC; default: .deps/cuda of the checkout that the executable
  /// was built in, where ./dev deps unpacks the wheels.
  std::vector<std::filesystem::path> fallback_folders;

  static ToolchainSearch of_process();
};

/// The existing folders of Python packages of VIRTUAL_ENV, of python3 on PATH and of the user. Runs no
/// Python.
std::vector<std::filesystem::path> find_site_packages(const Environment& environment);

/// The outcome of a search for NVRTC.
struct ToolchainsFound {
  std::vector<Toolchain>
      toolchains;                  // newest version first; of two with the same libraries the one found first
  std::vector<std::string> tried;  // every searched place, with what was missing there; for messages
};

/// SHA-256 digests of files, each computed once: again only when size, modification time or inode have
/// changed. Thread-safe; two threads that ask for the same new file may both read it.
class FileDigests {
 public:
  /// Throws the errors of reading the file.
  Digest of(const std::filesystem::path& path);

 private:
  struct Stamp {
    std::uint64_t size = 0, inode = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::mutex mutex_;
  std::map<std::filesystem::path, std::pair<Stamp, Digest>> known_;  // guarded by mutex_
};

/// Looks, in this order, into CUBIND_CUDA_HOME, CUDA_HOME, the usual toolkit folder, the Python wheels, the
/// folder that the package brings and, if none of them has one, the fallback folders. Finding nothing is not
/// an error; `tried` lists libraries that cannot be read.
ToolchainsFound find_toolchains(const ToolchainSearch& search, FileDigests& digests);

}  // namespace cubind
