// A library opened at run time.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace cubind::cuda {

/// Stays open as long as the process lives: CUDA's libraries install handlers and threads, and unloading them
/// is unsafe. Copies are the same library. Safe on many threads.
class SharedLibrary {
 public:
  /// Opens the first of `candidates` (sonames or paths) that loads. Absent if none does; `tried` then has the
  /// loader's message for each that is there, or says that the first was not found.
  static std::optional<SharedLibrary> open_first(std::span<const std::string> candidates, std::string& tried);

  /// Null if the library has no such symbol.
  void* symbol(const char* name) const;

  /// The candidate that loaded.
  const std::string& name() const { return name_; }
  /// The file it came from, symbolic links as the loader found them.
  std::string path() const;

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

}  // namespace cubind::cuda
