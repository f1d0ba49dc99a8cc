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
  /// False: it was there, and counts as asked for. Above a limit those definitions go that callers have not
  /// asked for longest. Throws the errors of writing files.
  bool add(const KernelSpec& spec);
  /// A caller asks for a kernel, which need not be one of these. The disk learns it at most once an hour.
  void asked(const std::string& name);
  /// Takes one out that cannot be read: it counts as never sent. False: its folder could not be removed.
  bool remove(const std::string& name);

 private:
  struct Definition {
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type asked,
        on_disk;  // when a caller asked last, and what the disk knows of it
  };

  /// Takes those out that have to go for a new one of so many bytes, and gives their names.
  std::vector<std::string> make_room(std::uint64_t bytes);
  /// All of it or nothing, even if the daemon is killed meanwhile.
  std::error_code remove_folder(const std::string& name) const;
  void write(const KernelSpec& spec) const;

  const std::filesystem::path folder_;
  const DefinitionLimits limits_;
  std::mutex changing_;  // held while the folder changes; taken before mutex_
  std::mutex mutex_;
  std::map<std::string, Definition> known_;  // guarded by mutex_; by name
};

}  // namespace cubind
