// The kernel specs that a daemon knows: read from folders, read again when their files change.
#pragma once

#include <atomic>
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

/// One spec file. `spec` is the one in force: if the file has become broken, its last good version. `error`
/// says what is wrong with the present file: file, JSON pointer and cause. At least one is set.
struct KernelEntry {
  std::string name;  // of a spec that never parsed: its file's stem
  std::string file;
  std::shared_ptr<const KernelSpec> spec;
  Digest interface;
  Digest verification;
  std::uint64_t revision =
      0;  // of `spec`: another for every change of its text or of a file that it includes
  std::string error;
};

/// Thread-safe. The library looks at the files again at most once a second, in one caller at a time; the
/// others go on with the known specs. A spec that was handed out never changes: a running job keeps the spec
/// that it began with.
class KernelLibrary {
 public:
  using Entries = std::vector<std::shared_ptr<const KernelEntry>>;  // by name

  /// Every *.json of the folders and of their sub-folders is a spec, but for tables and files whose name
  /// begins with a dot. A file that is reached twice (a folder given twice, a link) is one spec. Of two specs
  /// with one name, at first the first one in the order of folders and paths is in force. It stays in force
  /// until its file goes or its name changes. The other is listed with an error that names both files.
  ///
  /// A spec reads files of its own folder of `folders` and of the `shared` ones.
  KernelLibrary(std::vector<std::filesystem::path> folders, const Clock& clock,
                std::vector<std::filesystem::path> shared = {});

  std::shared_ptr<const Entries> kernels();
  /// The number of lists published so far, after a look. If it is read before kernels(), it is no newer than
  /// that list.
  std::uint64_t published();
  /// Throws NotFound with a suggestion, or FailedPrecondition with the error of a spec that has never parsed.
  std::shared_ptr<const KernelEntry> find(const std::string& name);
  /// Looks at the files now, after another caller's look if there is one: a user who has just edited a file
  /// and asks by name means the edited one.
  void reload();

  /// What the library makes of a spec file that a caller has read by himself. If the file lies in one of the
  /// folders, it throws the error with which the library would refuse it, and InvalidArgument if it does not
  /// look there. Else it returns what would serve it; empty: the file is served.
  std::string judge(const std::filesystem::path& file) const;

 private:
  /// The time of change, which no program can set, tells an edit that keeps size and modification time
  /// (cp -p, rsync -t, tar). Not seen: a write through a mapping until the system notes it, an edit behind a
  /// network file system's cache until that ends, and one while the clock was set back to the same instant.
  struct Stamp {
    bool exists = false;
    bool is_readable = false;
    std::chrono::nanoseconds modified{}, changed{};  // since the epoch
    std::uint64_t size = 0, device = 0, inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Loaded {
    std::shared_ptr<const KernelEntry> entry;  // null: a table that lies among the specs
    /// The stamp of every file that was looked for, from just before it was read.
    std::map<std::filesystem::path, Stamp> stamps;
    /// A file was written so recently that its next change may leave the stamp unchanged.
    bool unsettled = false;
  };

  struct Published {
    std::uint64_t in_force = 0;  // revision; 0: none, the file is refused or has never parsed
    std::string error;
  };

  void look_again();
  void look();  // with loading_ held
  void list_files();
  static Stamp stamp_of(const std::filesystem::path& file);
  static bool is_as_it_was(const Loaded& known);
  Loaded load(const std::filesystem::path& file, const KernelEntry* known);
  std::shared_ptr<const KernelEntry> parsed(std::shared_ptr<const KernelSpec> spec, const KernelEntry* known);
  /// Decides which of the files with one name is in force.
  void choose_holders();
  std::shared_ptr<const KernelEntry> refused(const KernelEntry& entry);
  /// Logs the news of a file when it is published.
  void tell(const std::filesystem::path& file, const KernelEntry& entry) const;
  void publish();

  const std::vector<std::filesystem::path> folders_, shared_;
  const Clock& clock_;
  std::mutex loading_;                              // held by the one caller that looks at the files
  std::map<std::filesystem::path, Loaded> loaded_;  // guarded by loading_
  std::vector<std::filesystem::path> order_;        // guarded by loading_
  std::map<std::filesystem::path, std::error_code> unlisted_;  // guarded by loading_; folders
  std::map<std::string, std::filesystem::path> holders_;       // guarded by loading_; in force, by name
  std::map<std::filesystem::path, Published> told_;            // guarded by loading_; by the last list
  std::uint64_t last_revision_ = 0;                            // guarded by loading_
  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_;   // guarded by mutex_
  std::atomic<std::uint64_t> published_{0};  // grows under mutex_
  std::atomic<std::chrono::steady_clock::time_point> next_look_{};
};

}  // namespace cubind
