#include "tests/service/kill/kill_campaign.hpp"

#include <csignal>
#include <thread>

#include "base/error.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kGone{3000};
constexpr int kPaceMicroseconds = 5000;
// How long a job stays in its commit: first the agent, then the daemon within its transaction.
constexpr milliseconds kAgentCommits{60};
constexpr milliseconds kStoreCommits{60};
constexpr const char* kFailpoints = "agent.commit=60,store.commit=60";
// Within the finalists' stage the moment is drawn from this, in the short phases from their events.
constexpr milliseconds kFinalistsSpread{400};
constexpr milliseconds kCompilingSpread{20};
constexpr std::uint64_t kEventsLetPass = 4;

const std::string kCompiling = kPhases[0], kFinalists = kPhases[3], kCommit = kPhases[4];
constexpr std::size_t kDaemonTarget = 0;

bool has_ended(v1::Job::State state) {
  return state == v1::Job::DONE || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

milliseconds spread_of(const KillCell& cell) {
  const std::string phase = kPhases[cell.phase];
  if (phase == kCompiling) {
    return kCompilingSpread;
  }
  if (phase == kFinalists) {
    return kFinalistsSpread;
  }
  if (phase != kCommit) {
    return milliseconds(0);
  }
  // An agent whose result is on its way has left the job.
  const milliseconds margin{15};
  return cell.target == kDaemonTarget ? kAgentCommits + kStoreCommits - margin : kAgentCommits - margin;
}

}  // namespace

std::map<std::string, std::string> undisturbed_winners(const std::vector<Problem>& problems) {
  TinyDaemon daemon({.problems = problems});
  std::map<std::string, std::string> winners;
  for (const v1::TuneEvent& event : tune(daemon->connect(), problems)) {
    const Problem problem = problem_from_wire(event.job().problem(), "problem");
    winners[to_string(problem)] = to_string(configuration_from_wire(event.winner(), "winner"));
  }
  return winners;
}

KillCampaign::KillCampaign(std::vector<Problem> problems, std::uint64_t seed)
    : problems_(std::move(problems)),
      daemon_({.problems = problems_, .pace_us = kPaceMicroseconds, .failpoints = kFailpoints}),
      random_(seed) {}

// The daemon's own word, just before the kill. While it commits it answers nothing.
bool KillCampaign::still_in_phase(const KilledJob& job) const {
  if (kPhases[job.cell.phase] == kCommit) {
    return true;
  }
  const Connection connection(const_cast<TinyDaemon&>(daemon_)->address());
  const auto reply = connection.list_jobs(false, kPatience);
  for (const v1::Job& open : reply.jobs()) {
    if (problem_from_wire(open.problem(), "problem") != job.problem) {
      continue;
    }
    return open.state() == v1::Job::RUNNING && open.phase() == kPhases[job.cell.phase];
  }
  return false;
}

void KillCampaign::kill(KilledJob& job) {
  std::vector<ProcessId> family;
  if (job.cell.target == kDaemonTarget) {
    family = descendants(daemon_->pid());
    daemon_->kill();
  } else {
    const auto target = find_process(daemon_->pid(), kTargets[job.cell.target]);
    if (!target) {
      return;
    }
    family = descendants(target->pid);
    family.push_back(*target);
    ::kill(target->pid, SIGKILL);
  }
  job.killed = true;
  const auto killed_at = steady_clock::now();
  job.orphans = wait_until_gone(family, kGone);
  job.gone_after = std::chrono::duration_cast<milliseconds>(steady_clock::now() - killed_at);
}

void KillCampaign::on_event(const v1::TuneEvent& event, KilledJob& job) {
  job.last = event;
  if (job.killed || event.job().state() != v1::Job::RUNNING) {
    return;
  }
  if (event.job().phase() != kPhases[job.cell.phase]) {
    return;
  }
  if (skip_ > 0) {
    --skip_;
    return;
  }
  const milliseconds spread = spread_of(job.cell);
  std::this_thread::sleep_for(milliseconds(random_.below(static_cast<std::uint64_t>(spread.count()) + 1)));
  if (still_in_phase(job)) {
    kill(job);
  }
}

void KillCampaign::finish_after_restart(KilledJob& job) {
  daemon_->reap();
  daemon_->start();
  const auto ended = tune(daemon_->connect(), {job.problem});
  if (!ended.empty()) {
    job.last = ended.front();
  }
}

KilledJob KillCampaign::run(const KillCell& cell) {
  KilledJob job;
  job.problem = problems_.at(next_++);
  job.cell = cell;
  const std::string phase = kPhases[cell.phase];
  const bool many_events = phase == "verifying" || phase == "screening";
  skip_ = many_events ? random_.below(kEventsLetPass) : 0;
  try {
    daemon_->connect().tune(
        tune_request({job.problem}), [&](const v1::TuneEvent& event) { on_event(event, job); }, {},
        std::nullopt);
  } catch (const Error& error) {
    if (!job.killed || cell.target != kDaemonTarget) {
      throw;
    }
  }
  if (job.killed && cell.target == kDaemonTarget) {
    finish_after_restart(job);
  }
  if (!has_ended(job.last.job().state())) {
    throw std::logic_error("a stream ended before its job");
  }
  return job;
}

}  // namespace cubind::test
