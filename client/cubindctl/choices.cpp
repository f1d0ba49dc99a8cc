#include "client/cubindctl/choices.hpp"

#include <algorithm>

#include "client/cubindctl/explanation.hpp"
#include "tuner/measure/statistics.hpp"

namespace cubind::ctl {
namespace {

bool is_of(const RepeatedProblem& repeated, const TableTrial& trial) {
  return trial.context.kernel == repeated.kernel && trial.context.problem == repeated.problem &&
         trial.context.policy == repeated.policy && trial.outcome == Outcome::Correct;
}

double time_of(const TableTrial& trial) {
  std::vector<double> samples;
  for (const SampleBlock& block : trial.finals.empty() ? trial.screening : trial.finals) {
    samples.insert(samples.end(), block.samples_us.begin(), block.samples_us.end());
  }
  return samples.empty() ? trial.time_us : median(samples);
}

}  // namespace

std::uint32_t flips(const std::vector<Configuration>& choices) {
  std::uint32_t count = 0;
  for (std::size_t i = 1; i < choices.size(); ++i) {
    count += choices[i] == choices[i - 1] ? 0 : 1;
  }
  return count;
}

std::vector<Configuration> to_measure(const RepeatedProblem& repeated, const Table& table, std::size_t most) {
  std::vector<const TableTrial*> timed;
  for (const TableTrial& trial : table.trials) {
    if (is_of(repeated, trial) && time_of(trial) > 0) {
      timed.push_back(&trial);
    }
  }
  std::ranges::stable_sort(timed, {}, [](const TableTrial* trial) { return time_of(*trial); });
  std::vector<Configuration> wanted;
  const auto add = [&](const Configuration& one) {
    if (std::ranges::find(wanted, one) == wanted.end()) {
      wanted.push_back(one);
    }
  };
  std::ranges::for_each(repeated.choices, add);
  for (std::size_t i = 0; i < std::min(most, timed.size()); ++i) {
    add(timed[i]->context.configuration);
  }
  return wanted;
}

std::vector<JudgedConfiguration> judge(const RepeatedProblem& repeated, const Table& table,
                                       std::uint32_t rounds, const MeasureSettings& settings) {
  std::vector<RoundTimes> times;
  std::vector<JudgedConfiguration> judged;
  double tick_us = 0;
  for (const TableTrial& trial : table.trials) {
    if (!is_of(repeated, trial) || trial.finals.size() != rounds) {
      continue;
    }
    tick_us = std::max(tick_us, trial.tick_us);
    times.push_back(rounds_of(trial, settings));
    judged.push_back(
        {trial.context.configuration, 0, 0,
         static_cast<std::uint32_t>(std::ranges::count(repeated.choices, trial.context.configuration))});
  }
  const RoundContext context{Digest::of(repeated.kernel), tick_us, settings};
  std::vector<const RoundTimes*> pointers;
  for (const RoundTimes& one : times) {
    pointers.push_back(&one);
  }
  const auto fastest = fastest_in_rounds(pointers, context);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    judged[i].time_us = round_location_us(times[i], context);
    const auto ratio = round_ratio(times[i], times[*fastest], context);
    judged[i].regret = ratio ? ratio->ratio - 1 : 0;
  }
  std::ranges::stable_sort(judged, {}, &JudgedConfiguration::regret);
  return judged;
}

}  // namespace cubind::ctl
