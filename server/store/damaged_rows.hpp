// Rows of the store with a damaged value: reads leave them out, and they stay in the file.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "base/error.hpp"

namespace cubind::store {

/// Thread-safe.
class DamagedRows {
 public:
  /// Logs and counts each row once; `damage` names table, row and column.
  void leave_out(const Error& damage);
  std::uint64_t count() const;
  /// Table, row and column of each.
  std::set<std::string> locations() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> locations_;  // guarded by mutex_
};

}  // namespace cubind::store
