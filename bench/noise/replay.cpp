// Replays the choice between two finalists on recorded times of one unchanged configuration.
//
// noise_replay SEEDS FILE...: each FILE as bench/noise/__main__.py writes it. Prints one JSON object for
// each: how often the second finalist wins, whose times are scaled, against the first, the incumbent.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "tuner/search/choice.hpp"
#include "tuner/search/final_rounds.hpp"

namespace cubind {
namespace {

constexpr std::array<std::uint32_t, 2> kLimits = {30, MeasureSettings{}.max_samples};
constexpr std::array<int, 5> kFasterByPercent = {-2, -1, 0, 1, 2};

using Runs = std::vector<std::vector<double>>;
// The times that a round reads, in the order of measuring.
using Draw = std::function<std::array<double, 2>()>;

// Neighbours of a run, run after run: clock and temperature go on from round to round as they did there.
class InOrder {
 public:
  InOrder(const Runs& runs, Random& random) : runs_(runs), random_(random) {}

  std::array<double, 2> operator()() {
    if (run_ == nullptr || at_ + 1 >= run_->size()) {
      run_ = &runs_[random_.below(runs_.size())];
      at_ = 0;
    }
    at_ += 2;
    return {(*run_)[at_ - 2], (*run_)[at_ - 1]};
  }

 private:
  const Runs& runs_;
  Random& random_;
  const std::vector<double>* run_ = nullptr;
  std::size_t at_ = 0;
};

// Each time from anywhere.
class Shuffled {
 public:
  Shuffled(const Runs& runs, Random& random) : runs_(runs), random_(random) {}

  std::array<double, 2> operator()() { return {one(), one()}; }

 private:
  double one() {
    const std::vector<double>& run = runs_[random_.below(runs_.size())];
    return run[random_.below(run.size())];
  }

  const Runs& runs_;
  Random& random_;
};

struct Choice {
  bool second_wins = false;
  std::uint32_t samples = 0;  // of each
};

Choice choose(const RoundContext& context, const std::array<double, 2>& factors, const Draw& draw) {
  FinalRounds rounds(2, context, context.settings.max_samples);
  std::uint32_t round = 0;
  for (; !rounds.done(); ++round) {
    const std::vector<std::size_t> order = rounds.order(round);
    const std::array<double, 2> drawn = draw();
    std::map<std::size_t, double> times;
    for (std::size_t i = 0; i < order.size(); ++i) {
      times[order[i]] = drawn[i] * factors[order[i]];
    }
    rounds.add_round(round, times);
  }
  Contender first{&rounds.times(0), rounds.running(0)};
  first.incumbent = true;
  const Contender second{&rounds.times(1), rounds.running(1)};
  return {choose_winner({first, second}, context) == 1u, round};
}

template <typename Drawing>
OrderedJson share(const Runs& runs, std::uint32_t limit, int percent, std::uint64_t seeds) {
  MeasureSettings settings;
  settings.max_samples = limit;
  std::uint64_t wins = 0;
  std::vector<std::uint32_t> samples;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const RoundContext context{Digest::of(std::to_string(seed)), 0, settings};
    const Choice choice = choose(context, {1, 1 / (1 + percent / 100.0)}, Drawing(runs, random));
    wins += choice.second_wins ? 1 : 0;
    samples.push_back(choice.samples);
  }
  std::ranges::sort(samples);
  return {{"second_is_faster_by_percent", percent},
          {"second_wins", static_cast<double>(wins) / static_cast<double>(seeds)},
          {"samples_of_each",
           {{"median", samples[samples.size() / 2]}, {"p95", samples[samples.size() * 95 / 100]}}}};
}

template <typename Drawing>
OrderedJson shares(const Runs& runs, std::uint64_t seeds) {
  OrderedJson by_limit;
  for (const std::uint32_t limit : kLimits) {
    OrderedJson& rows = by_limit["at_most_" + std::to_string(limit)];
    for (const int percent : kFasterByPercent) {
      rows.push_back(share<Drawing>(runs, limit, percent, seeds));
    }
  }
  return by_limit;
}

int run(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: noise_replay SEEDS FILE...\n";
    return 2;
  }
  const std::uint64_t seeds = std::stoull(arguments[1]);
  for (int at = 2; at < count; ++at) {
    const OrderedJson file = parse_json_strict(read_file(arguments[at]), arguments[at]);
    const Runs runs = file["runs_us"].get<Runs>();
    const OrderedJson printed = {{"name", file["name"]},
                                 {"in_order", shares<InOrder>(runs, seeds)},
                                 {"shuffled", shares<Shuffled>(runs, seeds)}};
    std::cout << printed.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace cubind

int main(int count, char** arguments) {
  try {
    return cubind::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "noise_replay: " << error.what() << "\n";
    return 1;
  }
}
