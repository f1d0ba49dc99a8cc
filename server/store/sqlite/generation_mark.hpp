// The mark that tells an older copy, written over a store's file, from the store itself.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "server/store/rows.hpp"

namespace cubind::store {

/// The store's id and its highest generation, in a file next to it (".NAME.generation"): a copy of the store
/// that is put back does not bring it along. Written after every change and never synced: where a power loss
/// takes changes of the store back, their numbers were still given out. One thread.
class GenerationMark {
 public:
  /// Throws where the file cannot be opened or made.
  explicit GenerationMark(const std::filesystem::path& store);

  /// Whether a store at this path has set its mark, once.
  static bool was_set_for(const std::filesystem::path& store);

  /// Whether a store at `found` was further, or was another one, when the mark was last set. False if none
  /// was set.
  bool is_ahead_of(const Generation& found) const;
  /// Does nothing if the mark is there already. A failed write is logged.
  void set(const Generation& generation);

 private:
  std::string path_;
  UniqueFd fd_;
  Generation last_;
};

}  // namespace cubind::store
