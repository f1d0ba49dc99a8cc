// The kernel specs that a daemon knows: read from folders, read again when their files change.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// One spec file. Either `spec` is set or `error` says why not: file, JSON pointer and cause.
struct KernelEntry {
  std::string name;  // of a broken spec: its file's stem
  std::string file;
  std::shared_ptr<const KernelSpec> spec;
  Digest interface;
  Digest verification;
  std::uint64_t revision = 0;  // another for every load
  std::string error;
};

/// Thread-safe. Files are looked at again at most once a second, by one caller at a time; the others go on
/// with what is known.
class KernelLibrary {
 public:
  using Entries = std::vector<std::shared_ptr<const KernelEntry>>;  // by name

  /// Every *.json of the folders and of their sub-folders is a spec, but for tables and files whose name
  /// begins with a dot. A file that is reached twice (a folder given twice, a link) is one spec. Of two specs
  /// with one name the first stands, in the order of folders and paths; the other is listed with an error.
  KernelLibrary(std::vector<std::filesystem::path> folders, const Clock& clock);

  std::shared_ptr<const Entries> kernels();
  /// Throws NotFound with a suggestion, or FailedPrecondition with the error of a spec that does not parse.
  std::shared_ptr<const KernelEntry> find(const std::string& name);
  /// Looks at the files now (SIGHUP).
  void reload();

 private:
  struct Stamp {
    std::filesystem::file_time_type time;
    std::uintmax_t size = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::map<std::filesystem::path, Stamp>;
  struct Loaded {
    std::shared_ptr<const KernelEntry> entry;
    Stamps stamps;  // of every file that the spec was read from
  };

  void look_again();
  Loaded load(const std::filesystem::path& file);
  void publish();
  static Stamps stamps_of(const KernelEntry& entry, const std::filesystem::path& file);

  const std::vector<std::filesystem::path> folders_;
  const Clock& clock_;
  std::mutex loading_;                              // held by the one caller that looks at the files
  std::map<std::filesystem::path, Loaded> loaded_;  // guarded by loading_
  std::vector<std::filesystem::path> order_;        // guarded by loading_
  std::uint64_t last_revision_ = 0;                 // guarded by loading_
  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_;           // guarded by mutex_
  std::chrono::steady_clock::time_point next_look_;  // guarded by mutex_
};

}  // namespace cubind
