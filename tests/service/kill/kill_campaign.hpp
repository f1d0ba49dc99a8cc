// kill -9 on running jobs: each job a problem of its own, one kill a job.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {

inline constexpr std::array<const char*, 5> kStages = {"compiling", "verifying", "screening", "finalists",
                                                       "commit"};
/// Words of the command lines of the processes that are killed. The first one is the daemon itself.
inline constexpr std::array<const char*, 4> kTargets = {"cubind", "cubind-agent", "cubind-worker device",
                                                        "cubind-worker compile"};

struct KillCell {
  std::size_t stage = 0, target = 0;
  auto operator<=>(const KillCell&) const = default;
};

/// One job: what was to be killed and when, and what came of it.
struct KilledJob {
  Problem problem;
  KillCell cell;
  std::string failpoint;                    // failpoint at which it was killed, or from which it had gone on
  bool killed = false;                      // false: the job never came there, or the process did not exist
  bool was_stored = false;                  // every batch that the agent had sent was stored
  bool one_was_stored = false;              // the oldest that was not acknowledged
  std::chrono::milliseconds gone_after{0};  // until the killed process and all that came from it had ended
  std::vector<ProcessId> orphans;           // that ran on after the limit
  v1::TuneEvent last;
};

/// Winners by problem, of undisturbed jobs.
std::map<std::string, std::string> undisturbed_winners(const std::vector<Problem>& problems);

/// Where a job is held: at failpoints that it reaches one after the other. The last one counts.
struct KillWindow {
  std::vector<std::string> points;
  std::uint64_t passes = 0;    // up to so many are let go by, at the first point
  bool goes_on = false;        // for a while, in every second round
  bool is_stored = false;      // nothing that was measured is on its way
  bool one_is_stored = false;  // a batch that is not acknowledged
  bool is_behind = false;      // the agent has left the job, and its device worker has ended
};

/// A daemon whose device takes its time, and whose processes are held at failpoints.
class KillCampaign {
 public:
  /// What varies within a stage is drawn from `seed`. `round` says which places of a stage are taken.
  KillCampaign(std::vector<Problem> problems, std::uint64_t seed, std::size_t round);

  /// Tunes the next problem, kills once on the way, waits until the job has ended.
  KilledJob run(const KillCell& cell);
  bool exhausted() const { return next_ == problems_.size(); }

  TinyDaemon& daemon() { return daemon_; }
  /// "TRIAL STAGE INDEX" of each block whose acknowledgement an agent got.
  std::vector<std::string> acknowledged_blocks() const;

 private:
  const KillWindow& window_of(const KillCell& cell) const;
  void hold_at(const std::string& failpoint, std::uint64_t passes) const;
  void let_go(const std::string& failpoint) const;
  bool is_held_at(const std::string& failpoint) const;
  void kill_at(const KillWindow& window, KilledJob& job, const std::future<void>& tuning);
  void kill(KilledJob& job);
  void finish_after_restart(KilledJob& job);

  std::vector<Problem> problems_;
  std::size_t next_ = 0;
  TempDir failpoints_;
  TinyDaemon daemon_;
  Random random_;
  std::size_t round_;
};

}  // namespace cubind::test
