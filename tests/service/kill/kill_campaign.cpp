#include "tests/service/kill/kill_campaign.hpp"

#include <csignal>
#include <future>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "plan/wire.hpp"
#include "tests/service/kill/kill_evidence.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{2};
// A daemon that acknowledged what it has not stored has said so by then.
constexpr milliseconds kSettles{20};
// How far a job goes on from its place, where it does.
constexpr std::uint64_t kGoesOnMilliseconds = 60;

constexpr std::size_t kDaemonTarget = 0, kDeviceTarget = 2;

const std::string kStoring = "store.batch", kAcknowledging = "daemon.acknowledge";

/// By stage. The kills of a cell take them in turns.
const std::array<std::vector<KillWindow>, kStages.size()> kWindows = {{
    {{.points = {"agent.compile"}, .passes = 4, .goes_on = true}},
    {{.points = {"agent.verify"}, .passes = 3, .goes_on = true}},
    {{.points = {kStoring}, .passes = 6},
     {.points = {"agent.screen"}, .passes = 6, .goes_on = true},
     {.points = {kAcknowledging}, .passes = 6, .one_is_stored = true}},
    {{.points = {"agent.round", kAcknowledging}, .passes = 4, .one_is_stored = true},
     {.points = {"agent.round"}, .passes = 4, .goes_on = true},
     {.points = {"agent.round", kStoring}, .passes = 4}},
    {{.points = {"store.commit"}, .is_stored = true, .is_behind = true},
     {.points = {"agent.commit"}, .is_stored = true}},
}};

bool has_ended(v1::Job::State state) {
  return state == v1::Job::DONE || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

bool is_over(const std::future<void>& tuning) {
  return tuning.wait_for(milliseconds(0)) == std::future_status::ready;
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

KillCampaign::KillCampaign(std::vector<Problem> problems, std::uint64_t seed, std::size_t round)
    : problems_(std::move(problems)),
      failpoints_("cubind-failpoints"),
      daemon_({.problems = problems_,
               .pace_us = std::chrono::microseconds(kPace).count(),
               .arguments = {"--log-level", "debug"},
               .failpoints = failpoints_.path().string()}),
      random_(seed),
      round_(round) {}

std::vector<std::string> KillCampaign::acknowledged_blocks() const {
  const std::string word = " debug: acknowledged ";
  std::vector<std::string> blocks;
  std::istringstream text(read_file(daemon_.folder() / "daemon/log"));
  for (std::string line; std::getline(text, line);) {
    if (const auto at = line.find(word); at != std::string::npos) {
      blocks.push_back(line.substr(at + word.size()));
    }
  }
  return blocks;
}

void KillCampaign::hold_at(const std::string& failpoint, std::uint64_t passes) const {
  std::filesystem::remove(failpoints_.path() / (failpoint + ".reached"));
  write_file_atomic(failpoints_.path() / failpoint, std::to_string(passes) + "\n");
}

void KillCampaign::let_go(const std::string& failpoint) const {
  std::filesystem::remove(failpoints_.path() / failpoint);
}

bool KillCampaign::is_held_at(const std::string& failpoint) const {
  return std::filesystem::exists(failpoints_.path() / (failpoint + ".reached"));
}

void KillCampaign::kill(KilledJob& job) {
  std::vector<ProcessId> family;
  const auto killed_at = steady_clock::now();
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
  job.orphans = wait_until_gone(family);
  job.gone_after = std::chrono::duration_cast<milliseconds>(steady_clock::now() - killed_at);
}

void KillCampaign::finish_after_restart(KilledJob& job) {
  daemon_->reap();
  daemon_->start();
  const auto ended = tune(daemon_->connect(), {job.problem});
  if (!ended.empty()) {
    job.last = ended.front();
  }
}

void KillCampaign::kill_at(const KillWindow& window, KilledJob& job, const std::future<void>& tuning) {
  std::uint64_t passes = random_.below(window.passes + 1);
  std::string before;
  for (const std::string& point : window.points) {
    hold_at(point, std::exchange(passes, 0));
    if (!before.empty()) {
      let_go(before);
    }
    while (!is_held_at(point) && !is_over(tuning)) {
      std::this_thread::sleep_for(kLook);
    }
    before = point;
  }
  job.failpoint = before;
  const bool goes_on = window.goes_on && round_ % 2 == 1;
  if (goes_on) {
    let_go(before);
    std::this_thread::sleep_for(milliseconds(random_.below(kGoesOnMilliseconds)));
  } else {
    std::this_thread::sleep_for(kSettles);
  }
  if (!is_over(tuning)) {
    job.was_stored = window.is_stored;
    job.one_was_stored = window.one_is_stored;
    kill(job);
  }
  let_go(before);
}

const KillWindow& KillCampaign::window_of(const KillCell& cell) const {
  const std::vector<KillWindow>& windows = kWindows[cell.stage];
  const std::size_t turn = (cell.target + round_) % windows.size();
  const bool is_gone = cell.target == kDeviceTarget && windows[turn].is_behind;
  return windows[is_gone ? (turn + 1) % windows.size() : turn];
}

KilledJob KillCampaign::run(const KillCell& cell) {
  KilledJob job;
  job.problem = problems_.at(next_++);
  job.cell = cell;
  const KillWindow& window = window_of(cell);
  // The kill before may have ended the agent: it comes back after a pause.
  if (!eventually([&] { return daemon_->connect().get_status(kPatience).agents() > 0; })) {
    throw std::logic_error("the agent did not come back");
  }
  std::future<void> tuning = std::async(std::launch::async, [&] {
    daemon_->connect().tune(
        tune_request({job.problem}), [&](const v1::TuneEvent& event) { job.last = event; }, {}, std::nullopt);
  });
  kill_at(window, job, tuning);
  try {
    tuning.get();
  } catch (const Error&) {
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
