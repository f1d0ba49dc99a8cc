// What a search over recorded trials gains from beginning with a neighbouring problem's best.
#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/search/search_plan.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/table/table.hpp"

namespace cubind {
namespace {

// A recorded problem, all of whose configurations were timed.
struct RecordedSpace {
  RecordedSpace(const Table& table, const KernelSpec& spec, const std::string& problem)
      : constants(device_constants(table.devices.front().facts)),
        space(spec, spec.canonicalize(parse_problem(problem), "problem"), constants) {
    for (const TableTrial& trial : table.trials) {
      if (trial.context.problem != spec.canonicalize(parse_problem(problem), "problem")) {
        continue;
      }
      std::vector<double> samples;
      for (const SampleBlock& block : trial.finals.empty() ? trial.screening : trial.finals) {
        samples.insert(samples.end(), block.samples_us().begin(), block.samples_us().end());
      }
      times.emplace_back(median(samples), trial.context.configuration);
    }
    std::ranges::sort(times, {}, &std::pair<double, Configuration>::first);
  }

  double time_of(std::uint64_t number) const {
    const Configuration configuration = space.configuration(number);
    const auto found = std::ranges::find(times, configuration, &std::pair<double, Configuration>::second);
    REQUIRE(found != times.end());
    return found->first;
  }
  // Its fastest, as numbers of another space.
  std::vector<std::uint64_t> best_in(const KernelSpace& other) const {
    std::vector<std::uint64_t> numbers;
    for (const auto& [time, configuration] : times) {
      if (const auto number = other.number(configuration); number && numbers.size() < kModelHints) {
        numbers.push_back(*number);
      }
    }
    return numbers;
  }

  DeviceConstants constants;
  KernelSpace space;
  std::vector<std::pair<double, Configuration>> times;  // fastest first
};

// The time of the best of so many trials over that of the best, less 1.
double regret(const RecordedSpace& asked, const std::vector<std::uint64_t>& hints, std::uint64_t trials,
              std::uint64_t seed) {
  const SearchPlan plan = plan_search(asked.space.numbers(), {.max_trials = trials});
  const auto strategy = make_strategy(plan, asked.space.numbers(), {}, hints, seed);
  std::vector<Observation> history;
  double best = asked.times.back().first;
  while (history.size() < trials) {
    const auto proposed = strategy->propose(history, 1);
    REQUIRE(proposed.size() == 1);
    const double time = asked.time_of(proposed.front());
    history.push_back({proposed.front(), Outcome::Correct, time});
    best = std::min(best, time);
  }
  return best / asked.times.front().first - 1;
}

TEST_CASE("a search that begins with a near problem's best is within a percent after a tenth of the trials") {
  const std::string file = (test::source_dir() / "tests/golden/replay/rmsnorm_search.json").string();
  const Table table = read_table(read_file(file), file);
  const auto spec = load_kernel_spec((test::source_dir() / "variants/rmsnorm/rmsnorm_forward.json").string());
  const RecordedSpace small(table, *spec, "N=4096,D=4096,T=bf16");
  const RecordedSpace large(table, *spec, "N=16384,D=4096,T=bf16");
  double cold = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(regret(large, small.best_in(large.space), large.times.size() / 10, seed) <= 0.01);
    CHECK(regret(small, large.best_in(small.space), small.times.size() / 10, seed) <= 0.01);
    cold += regret(large, {}, large.times.size() / 10, seed) / 20;
    cold += regret(small, {}, small.times.size() / 10, seed) / 20;
  }
  CHECK(cold > 0.01);  // without, on average
}

}  // namespace
}  // namespace cubind
