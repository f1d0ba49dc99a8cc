// Replays recorded tuning spaces: which share of the optimum a strategy has found after so many trials.
//
// search_replay FIRST_SEED SEEDS FILE...: each FILE as bench/search/convert.py writes it. Prints one JSON
// object for each: its count, and where it has records the strategies' shares by seed, the trials until they
// were within kWithin of the optimum, and what a proposal costs.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tuner/search/model_strategy.hpp"
#include "tuner/search/search_plan.hpp"
#include "tuner/search/tried.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {
namespace {

constexpr std::size_t kTrials = kDefaultTrials;
constexpr std::size_t kAsked[] = {25, 50, 100, 200};
constexpr double kWithin[] = {0.03, 0.01};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Times by configuration; absent where it failed.
using Records = std::map<std::vector<std::int64_t>, std::optional<double>>;

std::vector<Axis> axes_of(const OrderedJson& file) {
  std::vector<Axis> axes;
  for (const auto& axis : file["axes"]) {
    axes.push_back({axis["name"], axis["values"]});
  }
  return axes;
}

Records records_of(const OrderedJson& file, const std::vector<Axis>& axes) {
  Records records;
  for (const auto& record : file.value("records", OrderedJson::array())) {
    std::vector<std::int64_t> values;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      values.push_back(axes[axis].values.at(record[axis]));
    }
    const auto& time = record[axes.size()];
    records[values] = time.is_null() ? std::nullopt : std::optional<double>(time);
  }
  return records;
}

// What was recorded is what is valid.
Check recorded(const Records& records, std::size_t axes) {
  Check check;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    check.axes.push_back(static_cast<std::uint32_t>(axis));
  }
  check.holds = [&records](std::span<const std::int64_t> values) {
    return records.contains({values.begin(), values.end()});
  };
  return check;
}

// Draws without looking at the history: what every search has to beat.
class RandomStrategy : public Strategy {
 public:
  RandomStrategy(const ConfigurationSpace& space, std::uint64_t seed) : space_(space), seed_(seed) {}

  std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) override {
    Tried tried(history);
    Random random(seed_ * 1000 + history.size());
    std::vector<std::uint64_t> proposed;
    while (proposed.size() < std::min<std::size_t>(count, space_.size() - history.size())) {
      const std::uint64_t number = space_.sample(random).value();
      if (tried.add(number)) {
        proposed.push_back(number);
      }
    }
    return proposed;
  }

 private:
  const ConfigurationSpace& space_;
  const std::uint64_t seed_;
};

struct Run {
  std::vector<double> shares;                   // after kAsked trials
  std::size_t within[std::size(kWithin)] = {};  // trials until then; kTrials: never
};

class Replay {
 public:
  Replay(const ConfigurationSpace& space, const Records& records) : space_(space), records_(records) {
    for (const auto& [values, time] : records) {
      optimum_ = time ? std::min(optimum_, *time) : optimum_;
    }
  }

  // Adds the proposals' CPU time to `seconds`. As in the tuning loop, kModelAhead proposals are under way
  // while the next is asked for.
  Run run(Strategy& strategy, double& seconds) const {
    std::vector<Observation> history;
    Run made;
    std::ranges::fill(made.within, kTrials);
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t trial = 0; trial < std::min<std::size_t>(kTrials, records_.size()); ++trial) {
      const std::size_t ahead = trial + kModelAhead - history.size();
      const std::clock_t start = std::clock();
      for (const std::uint64_t number : strategy.propose(history, ahead)) {
        history.push_back({number, Outcome::Correct, std::nullopt});
      }
      seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      Observation& tried = history.at(trial);
      tried.time_us = records_.at(space_.values(space_.point(tried.number)));
      tried.outcome = tried.time_us ? Outcome::Correct : Outcome::Runtime;
      best = tried.time_us ? std::min(best, *tried.time_us) : best;
      if (std::find(std::begin(kAsked), std::end(kAsked), trial + 1) != std::end(kAsked)) {
        made.shares.push_back(optimum_ / best);
      }
      for (std::size_t i = 0; i < std::size(kWithin); ++i) {
        if (optimum_ / best >= 1 - kWithin[i]) {
          made.within[i] = std::min(made.within[i], trial + 1);
        }
      }
    }
    return made;
  }

 private:
  const ConfigurationSpace& space_;
  const Records& records_;
  double optimum_ = std::numeric_limits<double>::infinity();
};

template <typename Make>
OrderedJson replay(const Replay& replay, std::uint64_t first_seed, std::uint64_t seeds, const Make& make) {
  OrderedJson shares = OrderedJson::array(), within = OrderedJson::array();
  double seconds = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    const Run made = replay.run(*make(seed), seconds);
    shares.push_back(made.shares);
    within.push_back(made.within);
  }
  const double proposals = static_cast<double>(seeds * kTrials);
  return {{"shares", shares}, {"within", within}, {"proposal_ms", seconds * 1e3 / proposals}};
}

OrderedJson result(const std::string& path, std::uint64_t first_seed, std::uint64_t seeds) {
  const OrderedJson file = parse_json_strict(read_file(path), path);
  const std::vector<Axis> axes = axes_of(file);
  const Records records = records_of(file, axes);
  std::vector<Check> checks;
  for (const std::string constraint : file["constraints"]) {
    checks.push_back(expression_check(constraint, axes));
  }
  if (!records.empty()) {
    checks.push_back(recorded(records, axes.size()));
  }
  const auto start = Clock::now();
  const ConfigurationSpace space(axes, checks);
  OrderedJson printed = {
      {"name", file["name"]}, {"count", space.count()}, {"count_seconds", seconds_since(start)}};
  if (!records.empty()) {
    const Replay runs(space, records);
    printed["random"] = replay(runs, first_seed, seeds, [&](std::uint64_t seed) {
      return std::make_unique<RandomStrategy>(space, seed);
    });
    printed["model"] = replay(runs, first_seed, seeds, [&](std::uint64_t seed) {
      return std::make_unique<ModelStrategy>(space, std::vector<std::uint64_t>{}, seed);
    });
  }
  return printed;
}

int run(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: search_replay FIRST_SEED SEEDS FILE...\n";
    return 2;
  }
  for (int file = 3; file < count; ++file) {
    std::cout << result(arguments[file], std::stoull(arguments[1]), std::stoull(arguments[2])).dump()
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace cubind

int main(int count, char** arguments) {
  try {
    return cubind::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "search_replay: " << error.what() << "\n";
    return 1;
  }
}
