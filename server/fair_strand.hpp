// One thread for the work of many callers.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "server/strand.hpp"

namespace cubind {

/// Callers take turns: the next function is that of another caller, if one waits. A caller's own functions
/// run in the order in which they were posted. From any thread.
class FairStrand {
 public:
  /// False: the strand is closed, the function was dropped.
  bool post(const std::string& caller, Strand::Function function);
  /// As Strand::close().
  void close() { strand_.close(); }

 private:
  void run_next();

  std::mutex mutex_;
  std::map<std::string, std::deque<Strand::Function>> waiting_;  // by caller; guarded by mutex_
  std::string last_;                                             // whose turn it was; guarded by mutex_
  Strand strand_;
};

}  // namespace cubind
