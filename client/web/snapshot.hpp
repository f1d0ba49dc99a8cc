// What the pages show of a daemon, as one state.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {
class Connection;
}

namespace cubind::web {

struct Records {
  std::shared_ptr<const std::vector<v1::ListedRecord>> list;  // sorted by kernel
  std::shared_ptr<const std::vector<std::string>> texts;      // what a filter of the list looks for words in
  std::string missing;                                        // why the list is not today's; empty: it is
  std::vector<std::size_t> told = {};                         // of the list's columns, those with a value
};

struct Snapshot {
  std::string address;  // the daemon's
  v1::GetStatusReply status;
  std::vector<v1::Job> jobs;  // ended ones too, oldest first
  v1::ListWantedReply wanted;
  Records records;  // perhaps of an earlier generation
  std::chrono::system_clock::time_point read_at;
};

/// Thread-safe. However many pages are open, the daemon is asked at most once a second; for its ended jobs
/// after a change of the open ones, of its generation or 15 seconds, for its records after a change of its
/// generation or a minute. No page waits for records, whose reading takes at most a fiftieth of the time.
/// What was read with another token is dropped.
class Snapshots {
 public:
  explicit Snapshots(std::string address, const Clock& clock) : address_(std::move(address)), clock_(clock) {}

  const std::string& address() const { return address_; }
  /// Throws like Connection; a fault, too, is that of all who ask within a second.
  std::shared_ptr<const Snapshot> now();

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::shared_ptr<const Snapshot> read();
  void add_jobs(Snapshot& snapshot, const Connection& connection);
  void add_records(Snapshot& snapshot);

  const std::string address_;
  const Clock& clock_;
  std::mutex mutex_;  // held while the daemon is asked: the other pages wait for the same state
  std::shared_ptr<const Snapshot> last_;       // guarded by mutex_
  std::exception_ptr fault_;                   // of the latest reading; guarded by mutex_
  Digest caller_, reading_caller_;             // of last_ and reading_; guarded by mutex_
  std::vector<std::string> open_jobs_;         // ids, at jobs_at_; guarded by mutex_
  Time last_at_{}, jobs_at_{}, records_at_{};  // guarded by mutex_
  Time::duration records_took_{};              // guarded by mutex_
  v1::Generation records_of_;                  // guarded by mutex_; of the latest reading
  std::future<Records> reading_;               // guarded by mutex_
};

}  // namespace cubind::web
