// What the pages show of a daemon, as one state.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "schemas/cubind.pb.h"
#include "tuner/table/table.hpp"

namespace cubind::web {

struct Snapshot {
  std::string address;  // the daemon's
  v1::GetStatusReply status;
  std::vector<v1::Job> jobs;  // ended ones too, oldest first
  v1::ListWantedReply wanted;
  std::shared_ptr<const Table> records;  // with those that came with cubind; no trials
  std::string records_missing;           // why there are none: what the token may not read; empty: there are
  std::chrono::system_clock::time_point read_at;
};

/// Thread-safe. However many pages are open, the daemon is asked at most once a second; for its ended jobs
/// after a change of the open ones or 15 seconds, for its records after a change of its generation or a
/// minute.
class Snapshots {
 public:
  explicit Snapshots(std::string address, const Clock& clock) : address_(std::move(address)), clock_(clock) {}

  const std::string& address() const { return address_; }
  const Clock& clock() const { return clock_; }
  /// Throws like Connection.
  std::shared_ptr<const Snapshot> now();

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::shared_ptr<const Snapshot> read();
  void add_jobs(Snapshot& snapshot, const class Connection& connection);
  void add_records(Snapshot& snapshot, const class Connection& connection);

  const std::string address_;
  const Clock& clock_;
  std::mutex mutex_;  // held while the daemon is asked: the other pages wait for the same state
  std::shared_ptr<const Snapshot> last_;       // guarded by mutex_
  std::vector<std::string> open_jobs_;         // ids, at jobs_at_; guarded by mutex_
  Time last_at_{}, jobs_at_{}, records_at_{};  // guarded by mutex_
};

}  // namespace cubind::web
