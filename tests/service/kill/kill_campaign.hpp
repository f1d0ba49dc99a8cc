// kill -9 on running jobs: each job a problem of its own, one kill a job.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {

inline constexpr std::array<const char*, 5> kPhases = {"compiling", "verifying", "screening", "finalists",
                                                       "commit"};
/// Words of the command lines of the processes that are killed. The first one is the daemon itself.
inline constexpr std::array<const char*, 4> kTargets = {"cubind", "cubind-agent", "cubind-worker device",
                                                        "cubind-worker compile"};

struct KillCell {
  std::size_t phase = 0, target = 0;
  auto operator<=>(const KillCell&) const = default;
};

/// One job: what was to be killed and when, and what came of it.
struct KilledJob {
  Problem problem;
  KillCell cell;
  bool killed = false;                      // false: the job had left the phase, or the process was not there
  std::chrono::milliseconds gone_after{0};  // until the killed process and all that came from it had ended
  std::vector<ProcessId> orphans;           // that ran on after the limit
  v1::TuneEvent last;
};

/// Winners by problem, of jobs that nobody disturbed.
std::map<std::string, std::string> undisturbed_winners(const std::vector<Problem>& problems);

/// A daemon whose device takes its time.
class KillCampaign {
 public:
  /// The moments of the kills are drawn from `seed`.
  KillCampaign(std::vector<Problem> problems, std::uint64_t seed);

  /// Tunes the next problem, kills once on the way, waits until the job has ended.
  KilledJob run(const KillCell& cell);
  bool exhausted() const { return next_ == problems_.size(); }

  TinyDaemon& daemon() { return daemon_; }

 private:
  void on_event(const v1::TuneEvent& event, KilledJob& job);
  bool still_in_phase(const KilledJob& job) const;
  void kill(KilledJob& job);
  void finish_after_restart(KilledJob& job);

  std::vector<Problem> problems_;
  std::size_t next_ = 0;
  TinyDaemon daemon_;
  Random random_;
  std::uint64_t skip_ = 0;  // events of the phase that are let pass
};

}  // namespace cubind::test
