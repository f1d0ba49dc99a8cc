// Five kills, one in each stage and at least one of each process; CUBIND_KILLS sets more. The acceptance run
// is CUBIND_KILLS=200: ten kills for each of five stages and four processes.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <numeric>

#include "plan/wire.hpp"
#include "tests/service/kill/kill_campaign.hpp"
#include "tests/service/kill/kill_evidence.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kCells = kStages.size() * kTargets.size();

std::size_t wanted_kills() {
  const char* variable = std::getenv("CUBIND_KILLS");
  const std::size_t wanted = variable ? std::strtoul(variable, nullptr, 10) : kStages.size();
  return std::max<std::size_t>(wanted, 1);
}

// A kill that found no process is tried again on another problem. A round has a store and a table of its own:
// each device worker reads the table.
std::vector<Problem> problems_of_a_round(std::size_t kills) {
  const std::size_t jobs = std::min(kills, kCells);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < jobs + jobs / 4 + 2; ++i) {
    problems.push_back(tiny_problem(static_cast<std::int64_t>(i + 1)));
  }
  return problems;
}

// Each cell once in kCells kills.
KillCell cell_of(std::size_t kill) { return {kill % kStages.size(), kill % kTargets.size()}; }
static_assert(std::gcd(kStages.size(), kTargets.size()) == 1);

struct Tally {
  std::map<KillCell, std::size_t> kills;
  std::map<std::size_t, std::size_t> most_repeated;  // by stage
  std::map<std::string, std::size_t> failpoints;
  std::size_t missed = 0, measured = 0, stored = 0, repeated = 0;
  std::chrono::milliseconds longest_gone{0};
};

void print(const Tally& tally) {
  std::cout << "\nkills           ";
  for (const char* target : kTargets) {
    std::cout << std::setw(24) << target;
  }
  std::cout << std::setw(18) << "blocks repeated" << '\n';
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    std::cout << std::left << std::setw(16) << kStages[stage] << std::right;
    for (std::size_t target = 0; target < kTargets.size(); ++target) {
      const auto found = tally.kills.find({stage, target});
      std::cout << std::setw(24) << (found == tally.kills.end() ? 0 : found->second);
    }
    const auto repeated = tally.most_repeated.find(stage);
    std::cout << std::setw(11) << "at most" << std::setw(7)
              << (repeated == tally.most_repeated.end() ? 0 : repeated->second) << '\n';
  }
  std::cout << "at";
  for (const auto& [failpoint, kills] : tally.failpoints) {
    std::cout << ' ' << failpoint << ' ' << kills;
  }
  std::cout << "\nblocks: " << tally.measured << " measured, " << tally.stored << " stored, "
            << tally.repeated << " measured again; kills that found nothing: " << tally.missed
            << "; the killed and their children were gone after at most " << tally.longest_gone.count()
            << " ms\n";
}

void check_job(const KilledJob& job, const std::map<std::string, std::string>& winners) {
  INFO(to_string(job.problem) << ", " << kTargets[job.cell.target] << " killed while "
                              << kStages[job.cell.stage]);
  INFO(job.last.job().error());
  CHECK(job.last.job().state() == v1::Job::DONE);
  CHECK(job.orphans.empty());
  CHECK(to_string(configuration_from_wire(job.last.winner(), "winner")) ==
        winners.at(to_string(job.problem)));
}

// With the daemon, whose agent then drops them, and with the agent all batches that are not stored are lost;
// one that waits for its acknowledgement alone is not. What a device worker measures is lost with it.
std::size_t most_lost(const KilledJob& job) {
  const std::string target = kTargets[job.cell.target];
  if (!job.killed || job.was_stored || target == "cubind-worker compile") {
    return 0;
  }
  return target == "cubind-worker device" ? 1 : kMostLost - (job.one_was_stored ? kMostInBatch : 0);
}

void check_evidence(const std::vector<KilledJob>& jobs, KillCampaign& campaign, const Table& played,
                    Tally& tally) {
  const Table stored = read_table(export_everything(campaign.daemon()->connect()), "export");
  auto evidence =
      gather_evidence(campaign.daemon().measured_blocks(), campaign.acknowledged_blocks(), stored, played);
  for (const KilledJob& job : jobs) {
    const KillEvidence& one = evidence[to_string(job.problem)];
    INFO(to_string(job.problem) << ", " << kTargets[job.cell.target] << " killed while "
                                << kStages[job.cell.stage]);
    CHECK(one.stored >= kTinyConfigurations);
    for (const std::string& fault : one.faults) {
      FAIL_CHECK(fault);
    }
    CHECK(one.measurements <= most_lost(job));
    tally.measured += one.measured;
    tally.stored += one.stored;
    tally.repeated += one.repeated;
    std::size_t& most = tally.most_repeated[job.cell.stage];
    if (job.killed) {
      most = std::max(most, one.repeated);
    }
  }
  CHECK_FALSE(evidence.contains("unknown"));
}

// The kills from `first` on, at most one for each cell.
void run_round(std::size_t first, std::size_t kills, const std::vector<Problem>& problems,
               const std::map<std::string, std::string>& winners, Tally& tally) {
  KillCampaign campaign(problems, first, first / kCells);
  std::vector<KilledJob> jobs;
  for (std::size_t kill = first; kill < std::min(kills, first + kCells) && !campaign.exhausted();) {
    const KilledJob job = campaign.run(cell_of(kill));
    check_job(job, winners);
    jobs.push_back(job);
    tally.longest_gone = std::max(tally.longest_gone, job.gone_after);
    if (!job.killed) {
      ++tally.missed;
      continue;
    }
    ++tally.kills[job.cell];
    ++tally.failpoints[job.failpoint];
    ++kill;
  }
  check_evidence(jobs, campaign, tiny_table(problems), tally);
}

TEST_CASE("a job whose processes are killed resumes with nothing lost or doubled and the same winner") {
  const std::size_t kills = wanted_kills();
  const std::vector<Problem> problems = problems_of_a_round(kills);
  const auto winners = undisturbed_winners(problems);
  REQUIRE(winners.size() == problems.size());
  Tally tally;
  for (std::size_t first = 0; first < kills; first += kCells) {
    run_round(first, kills, problems, winners, tally);
  }
  print(tally);
  std::size_t killed = 0;
  for (const auto& [cell, count] : tally.kills) {
    killed += count;
  }
  CHECK(killed == kills);
}

}  // namespace
}  // namespace cubind::test
