// The want list while the store takes no writes.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "server/store/rows.hpp"

namespace cubind {

class Store;

/// Thread-safe.
class KeptWants {
 public:
  /// Counts a miss with the store's list, or keeps it if the store is known to take no writes.
  void count(Store& store, const RecordQuestion& wanted, const std::string& now);
  /// Keeps a miss for later. Of more than kMaxWants the latest stay.
  void keep(const RecordQuestion& wanted, const std::string& now);
  /// Counts what was kept, if the store takes writes.
  void store_kept(Store& store);

 private:
  struct Kept {
    RecordQuestion wanted;
    std::string at;
  };

  std::mutex mutex_;
  std::deque<Kept> kept_;  // guarded by mutex_
};

}  // namespace cubind
