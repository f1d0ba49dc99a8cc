// The compiling and tuning that answers have spared their callers.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "server/service/answer_counts.hpp"
#include "server/store/rows.hpp"

namespace cubind {

class Store;

/// Thread-safe. The store has the sums of earlier times and of other daemons; what this one has counted
/// since is added to them at least every half minute, and when the daemon stops.
class SavedWork {
 public:
  SavedWork(Store& store, const AnswerCounts& answers) : store_(store), answers_(answers) {}

  /// The time that the job took; 0: not known, or there is none.
  double tuning_ms(const std::string& job);
  Savings now() const;
  /// Adds to the store. If it takes no writes, the next call does.
  void keep();

 private:
  Savings unkept() const;  // with mutex_ held

  Store& store_;
  const AnswerCounts& answers_;
  mutable std::mutex mutex_;
  Savings stored_;                                  // guarded by mutex_; as of the last keep()
  AnswerCounts::Spared kept_;                       // guarded by mutex_; of answers_, in the store
  std::unordered_map<std::string, double> by_job_;  // guarded by mutex_
};

}  // namespace cubind
