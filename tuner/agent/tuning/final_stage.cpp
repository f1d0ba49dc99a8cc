#include "tuner/agent/tuning/final_stage.hpp"

#include <algorithm>
#include <limits>

#include "base/failpoint.hpp"

namespace cubind {
namespace {

std::uint32_t most_registers(const Compiled& artifact) {
  std::uint32_t most = 0;
  for (const EntryResources& entry : artifact.resources) {
    most = std::max(most, entry.registers());
  }
  return most;
}

std::uint64_t most_shared_bytes(const Candidate& candidate, const Compiled& artifact) {
  std::uint64_t fixed = 0, dynamic = 0;
  for (const EntryResources& entry : artifact.resources) {
    fixed = std::max<std::uint64_t>(fixed, entry.static_shared_bytes());
  }
  for (const Launch& launch : as_compiled(candidate.plan, artifact).launches) {
    dynamic = std::max(dynamic, launch.shared_bytes);
  }
  return fixed + dynamic;
}

}  // namespace

FinalStage::FinalStage(TrialBench& bench, const TrialLog& log, JobProgress& progress, const JobStop& stop,
                       const RoundContext& context)
    : bench_(bench), log_(log), progress_(progress), stop_(stop), context_(context) {}

RoundPlan FinalStage::plan_of(const std::vector<const Candidate*>& finalists) const {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Candidate* candidate : finalists) {
    fastest = std::min(fastest, bench_.observed_us(*candidate).value_or(fastest));
  }
  return round_plan(fastest, context_);
}

// The first round from `at_least` on that everyone has, else the first that none has and none follows.
std::uint32_t FinalStage::next_round(const std::vector<const Candidate*>& running,
                                     std::uint32_t at_least) const {
  std::uint32_t end = at_least;
  for (const Candidate* candidate : running) {
    end = std::max(end, log_.next_index(*candidate, v1::SampleBlock::FINAL));
  }
  for (std::uint32_t round = at_least; round < end; ++round) {
    const bool complete = std::ranges::all_of(running, [&](const Candidate* candidate) {
      return log_.block(*candidate, v1::SampleBlock::FINAL, round) != nullptr;
    });
    if (complete) {
      return round;
    }
  }
  return end;
}

// Absent: one of them failed, and the round is measured without it, or again.
std::optional<std::map<std::size_t, double>> FinalStage::measure(
    std::uint32_t round, const std::vector<const Candidate*>& finalists, std::uint32_t samples,
    FinalRounds& rounds) {
  std::vector<const Candidate*> order;
  for (const std::size_t i : rounds.order(round)) {
    order.push_back(finalists[i]);
  }
  failpoint("agent.round");
  const TrialBench::Round measured = bench_.round(round, order, samples);
  if (measured.failed) {
    const auto at = std::ranges::find(finalists, measured.failed) - finalists.begin();
    if (measured.attempt == Attempt::Out) {
      rounds.remove(static_cast<std::size_t>(at));
    }
    if (measured.attempt == Attempt::Deferred) {
      bench_.make_fresh_for(*measured.failed);
    }
    return std::nullopt;
  }
  std::map<std::size_t, double> times;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const auto time = measured.times_us.find(finalists[i]->number);
    if (time != measured.times_us.end()) {
      times[i] = time->second;
    }
  }
  return times;
}

std::vector<Finalist> FinalStage::run(const std::vector<const Candidate*>& finalists) {
  progress_.stage("finalists");
  const RoundPlan plan = plan_of(finalists);
  FinalRounds rounds(finalists.size(), context_, plan.most_rounds);
  std::uint32_t at_least = 0;
  while (!rounds.done()) {
    stop_.check_between_trials();
    std::vector<const Candidate*> running;
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      if (rounds.running(i)) {
        running.push_back(finalists[i]);
      }
    }
    const std::uint32_t round = next_round(running, at_least);
    if (const auto times = measure(round, finalists, plan.samples, rounds)) {
      rounds.add_round(round, *times);
      progress_.stage("finalists");
      at_least = round + 1;
    }
  }
  bench_.commit();
  std::vector<Finalist> result;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    if (!rounds.removed(i)) {
      result.push_back({finalists[i], rounds.times(i), rounds.running(i)});
    }
  }
  return result;
}

std::optional<std::size_t> choose_finalist(const std::vector<Finalist>& finalists, const TrialBench& bench,
                                           const RoundContext& context) {
  std::vector<Contender> contenders;
  for (const Finalist& finalist : finalists) {
    const Compiled& artifact = bench.artifact(*finalist.candidate);
    contenders.push_back({&finalist.times, finalist.running, finalist.candidate->incumbent,
                          finalist.candidate->is_default, most_registers(artifact),
                          most_shared_bytes(*finalist.candidate, artifact),
                          finalist.candidate->space_number});
  }
  return choose_winner(contenders, context);
}

}  // namespace cubind
