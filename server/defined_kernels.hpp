#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The kernels that callers have defined: a folder with a folder for each of them, which KernelLibrary reads
/// like any other. What the store knows of a kernel outlives its definition, which the caller sends again
/// when it is missed. Thread-safe.
class DefinedKernels {
 public:
  static constexpr std::size_t kMost = 2000;

  /// The folder is created with the first kernel.
  explicit DefinedKernels(std::filesystem::path folder, std::size_t most = kMost)
      : folder_(std::move(folder)), most_(most) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// False: it was there. Above the limit the oldest definition goes. Throws the errors of writing files.
  bool add(const KernelSpec& spec);

 private:
  void write(const KernelSpec& spec) const;
  void make_room() const;

  const std::filesystem::path folder_;
  const std::size_t most_;
  std::mutex mutex_;  // held while the folder changes
};

}  // namespace cubind
