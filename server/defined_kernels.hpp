#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// How much of it is kept; the daemon holds as much in RAM.
struct DefinitionLimits {
  std::size_t count = 2000;
  std::uint64_t bytes = std::uint64_t{256} << 20;
};

/// The kernels that callers have defined: a folder with a folder for each of them, which KernelLibrary reads
/// like any other. What the store knows of a kernel, and the generation that a training job has pinned,
/// outlive its definition, which the caller sends again when it is missed. Thread-safe.
class DefinedKernels {
 public:
  /// The folder is created with the first kernel. Nothing else may change it meanwhile.
  explicit DefinedKernels(std::filesystem::path folder, DefinitionLimits limits = {});

  const std::filesystem::path& folder() const { return folder_; }
  /// Whether a spec file is one of these.
  bool holds(const std::filesystem::path& file) const { return file.parent_path().parent_path() == folder_; }
  /// Whether a definition may have a file of this name: no other spec, and none that is noted here.
  static bool may_hold(const std::filesystem::path& file);
  /// False: it was there, and counts as asked for. A CUDA kernel with other files replaces the one that was
  /// there; another user's does not: AlreadyExists. Above a limit those definitions go that callers have not
  /// asked for longest. Throws the errors of writing files.
  /// `is_foreign`: another user than the daemon's sends it. The daemon's own user vouches for it by sending
  /// it too.
  bool add(const KernelSpec& spec, bool is_foreign = false);
  /// Whether other users alone have sent it. False for a kernel that is none of these.
  bool is_foreign(const std::string& name) const;
  /// A caller asks for a kernel, which need not be one of these. The disk learns it at most once an hour.
  void asked(const std::string& name);
  /// The kernel is found by the hint from now on: by its 16 latest ones. Ignored for a kernel that is none of
  /// these. The disk keeps hints as long as the definition.
  void hinted(const std::string& name, const std::string& hint);
  /// Empty: no definition has the hint.
  std::string find(const std::string& hint);
  /// Takes one out that cannot be read: it counts as never sent. False: its folder could not be removed.
  bool remove(const std::string& name);

 private:
  struct Definition {
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type asked,
        on_disk;                          // when a caller asked last, and what the disk knows of it
    std::vector<std::string> hints = {};  // the latest last
    bool is_foreign = false;
  };

  /// Takes those out that have to go for a new one of so many bytes, and gives their names.
  std::vector<std::string> make_room(std::uint64_t bytes);
  /// All of it or nothing, even if the daemon is killed meanwhile.
  std::error_code remove_folder(const std::string& name) const;
  void forget(const std::string& name);       // with mutex_ held
  void write_hints(const std::string& name);  // with changing_ held
  void vouch_for(const std::string& name);    // with changing_ held
  /// Whether it is there. A Triton kernel's name has a digest of what counts.
  bool is_known(const KernelSpec& spec, bool is_foreign) const;
  void write(const KernelSpec& spec, bool is_foreign) const;

  const std::filesystem::path folder_;
  const DefinitionLimits limits_;
  std::mutex changing_;  // held while the folder changes; taken before mutex_
  mutable std::mutex mutex_;
  std::map<std::string, Definition> known_;   // guarded by mutex_; by name
  std::map<std::string, std::string> names_;  // guarded by mutex_; by hint
};

}  // namespace cubind
