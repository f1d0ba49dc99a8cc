#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/memory_file.hpp"

namespace cubind::worker {

/// The precompiled header of one kernel, in memory of this process. Replies are the same with it and without:
/// if anything is unusual, the source is compiled without it.
///
/// The header holds the #include lines at the beginning of a source. It fits only the same beginning, header
/// set and options. The macros of configurations differ, so a macro that neither the beginning nor a header
/// mentions is defined after it. For one thread.
class PrecompiledHeaders {
 public:
  /// A compile that makes or uses the header.
  struct Attempt {
    std::string source;
    std::vector<std::string> options;
    std::string key;
    bool makes = false;
  };
  /// `options`: without those that define macros. Absent if a header cannot be used, or would not save time:
  /// the headers are small, or no other configuration is known to need them.
  std::optional<Attempt> attempt(const v1::CompileRequest& request, const v1::HeaderSet& headers,
                                 std::vector<std::string> options);
  /// Removes NVRTC's message about the header from its log. False: the source must be compiled without it,
  /// because it was not made, or because NVRTC has messages about the headers, which it prints only once.
  bool accept(const Attempt& attempt, std::string& log);
  /// Never again: the source compiles without this header, but not with it.
  void refuse(const std::string& key);
  /// Frees the header.
  void forget();
  /// The header set has changed.
  void forget_names() { mentioned_.clear(); }

 private:
  bool is_mentioned(const std::string& name, const v1::HeaderSet& headers);

  MemoryFile file_;
  std::string key_;       // of the header in file_; empty: there is none
  bool is_used_ = false;  // by a second configuration
  std::string last_key_;  // of the request before
  std::string refused_key_;
  std::map<std::string, bool> mentioned_;  // by the header set
};

}  // namespace cubind::worker
