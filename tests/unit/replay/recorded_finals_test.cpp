// Screening and finals over trials that were recorded on an H200: what they cost, and what
// their choice loses.
#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/random.hpp"
#include "tests/support/paths.hpp"
#include "tuner/measure/margins.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/search/choice.hpp"
#include "tuner/search/screening.hpp"
#include "tuner/table/table.hpp"
#include "tuner/table/table_samples.hpp"

namespace cubind {
namespace {

// One of the recorded trials. Each run draws its own samples from the recorded ones.
struct Recorded {
  std::vector<double> screening, finals;

  double true_us() const { return median(finals.empty() ? screening : finals); }
  double draw(Random& random, bool is_final) const {
    const std::vector<double>& from = is_final && !finals.empty() ? finals : screening;
    return from[random.below(from.size())];
  }
};

std::map<std::string, std::vector<Recorded>> recorded_trials() {
  const std::string file = (test::source_dir() / "tests/golden/replay/rmsnorm_search.json").string();
  std::map<std::string, std::vector<Recorded>> result;
  for (const TableTrial& trial : read_table(read_file(file), file).trials) {
    result[to_string(trial.context.problem)].push_back(
        {samples_of(trial.screening), samples_of(trial.finals)});
  }
  return result;
}

struct Cost {
  std::size_t finalists = 0;
  std::size_t samples = 0;    // of all finalists together
  std::size_t intervals = 0;  // that were drawn to compare them
  double regret = 0;          // the choice's time over that of the best recorded finalist, less 1
};

std::vector<std::size_t> screened_finalists(const std::vector<Recorded>& trials, Random& random,
                                            double tick_us) {
  const MeasureSettings settings;
  std::vector<Screened> screened;
  std::optional<double> best_us;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    std::vector<double> samples;
    ScreenStep step;
    while ((step = screen_step({samples, best_us, tick_us, i == 0}, settings)).verdict ==
           ScreenVerdict::Measure) {
      for (std::uint32_t k = 0; k < step.samples; ++k) {
        samples.push_back(trials[i].draw(random, false));
      }
    }
    if (step.verdict == ScreenVerdict::Survivor) {
      screened.push_back({i, screen_value_us(samples, tick_us, settings), i == 0});
      best_us = std::min(best_us.value_or(screened.back().value_us), screened.back().value_us);
    }
  }
  return choose_finalists(screened, tick_us, settings);
}

Cost run(const std::vector<Recorded>& trials, const std::string& seed) {
  const RoundContext context{Digest::of(seed), 0.032, {}};
  Random random(context.seed);
  const std::vector<std::size_t> finalists = screened_finalists(trials, random, context.tick_us);
  FinalRounds rounds(finalists.size(), context, context.settings.max_samples);
  Cost cost;
  for (std::uint32_t round = 0; !rounds.done(); ++round) {
    std::map<std::size_t, double> times;
    for (const std::size_t i : rounds.order(round)) {
      times[i] = trials[finalists[i]].draw(random, true);
    }
    cost.samples += times.size();
    rounds.add_round(round, times);
  }
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    contenders.push_back({&rounds.times(i), rounds.running(i), false, finalists[i] == 0, 0, 0, finalists[i]});
  }
  const std::size_t winner = finalists[*choose_winner(contenders, context)];
  double best = std::numeric_limits<double>::max();
  for (const Recorded& trial : trials) {
    best = trial.finals.empty() ? best : std::min(best, trial.true_us());
  }
  cost.finalists = finalists.size();
  cost.intervals = rounds.intervals();
  cost.regret = trials[winner].true_us() / best - 1;
  return cost;
}

TEST_CASE("finals over recorded trials cost few samples and few comparisons and lose nothing") {
  std::size_t samples = 0;
  for (const auto& [problem, trials] : recorded_trials()) {
    for (const char* seed : {"one", "two", "three"}) {
      const Cost cost = run(trials, problem + seed);
      INFO(problem << " " << seed << ": " << cost.finalists << " finalists, " << cost.samples << " samples, "
                   << cost.intervals << " intervals, regret " << cost.regret);
      CHECK(cost.finalists <= MeasureSettings{}.short_finalists);
      CHECK(cost.intervals <= 100);  // one for each finalist and round would be 960
      CHECK(cost.regret <= 0.025);
      samples += cost.samples;
    }
  }
  CHECK(samples <= 5500);  // of twelve runs
}

}  // namespace
}  // namespace cubind
