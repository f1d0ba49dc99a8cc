#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/includes/compiler_file.hpp"

namespace cubind {

/// A header that does not come with the spec: one of the CUDA toolkit, or a stand-in.
struct ToolkitHeader {
  SharedFile file;
  std::vector<std::string> includes;  // every name that it may include, whether there is such a header or not
  /// What it includes depends on macros, so that its text alone does not tell.
  bool by_macro = false;
};

/// Whether the name is one of CCCL's: cub/, cuda/, thrust/, nv/.
bool is_of_cccl(std::string_view name);

/// The headers of one CUDA toolkit, each read, scanned and hashed once. Thread-safe. What find() returns
/// lives as long as this.
class ToolkitHeaders {
 public:
  /// All headers in and below a folder, by the names that an #include gives them.
  using Listing = std::function<std::vector<std::string>(const std::string& folder)>;

  explicit ToolkitHeaders(FileLookup read, Listing list = {})
      : read_(std::move(read)), list_(std::move(list)) {}
  ToolkitHeaders(const ToolkitHeaders&) = delete;
  ToolkitHeaders& operator=(const ToolkitHeaders&) = delete;

  /// Null: there is none. Never reads a name that climbs or is absolute.
  const ToolkitHeader* find(const std::string& name);

  /// The names of all headers that come with this one, sorted: of CCCL, or of its topmost folder; none for a
  /// header without a folder.
  const std::vector<std::string>& package_of(const std::string& name);

 private:
  struct Entry {
    bool exists = false;
    std::string content;  // until there is a header
    std::unique_ptr<const ToolkitHeader> header;
  };
  Entry& load(const std::string& name);
  std::unique_ptr<const ToolkitHeader> make(const std::string& name, const std::string& content);
  std::string spelled(const std::string& from, const std::string& name, bool angled);

  const FileLookup read_;
  const Listing list_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;                      // guarded by mutex_
  std::map<std::string, std::vector<std::string>> packages_;  // guarded by mutex_; by their first folder
};

}  // namespace cubind
