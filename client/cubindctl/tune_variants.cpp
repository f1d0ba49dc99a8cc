#include "client/cubindctl/tune_variants.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/few_variants.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/long_measurement.hpp"
#include "client/cubindctl/progress_bar.hpp"
#include "client/cubindctl/stored_trials.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/cubindctl/text_table.hpp"
#include "tuner/spec/space.hpp"

namespace cubind::ctl {
namespace {

constexpr std::uint32_t kRounds = 100;
constexpr std::size_t kFastest = 8;      // of each problem, that may serve others
constexpr std::size_t kCandidates = 48;  // of a kernel

// Of one kernel.
struct Chosen {
  std::vector<RepeatedProblem> problems;
  std::vector<Configuration> defaults;  // of each problem
  std::vector<Configuration> candidates;
  std::vector<ProblemRegrets> regrets;
  std::vector<VariantSet> sets;        // by size
  std::optional<std::size_t> fitting;  // the smallest set within the bound
};

// Those that are among the fastest of most problems, the winners first.
std::vector<Configuration> candidates_of(const std::vector<RepeatedProblem>& problems, const Table& trials) {
  std::vector<std::pair<Configuration, std::size_t>> votes;
  const auto vote = [&](const Configuration& one, std::size_t weight) {
    const auto known = std::ranges::find(votes, one, &decltype(votes)::value_type::first);
    if (known == votes.end()) {
      votes.emplace_back(one, weight);
    } else {
      known->second += weight;
    }
  };
  for (const RepeatedProblem& one : problems) {
    vote(one.choices.back(), problems.size() + 1);
    for (const Configuration& fast : to_measure(one, trials, kFastest)) {
      vote(fast, 1);
    }
  }
  std::ranges::stable_sort(votes, std::greater{}, &decltype(votes)::value_type::second);
  votes.resize(std::min(votes.size(), kCandidates));
  std::vector<Configuration> candidates;
  for (const auto& [configuration, weight] : votes) {
    candidates.push_back(configuration);
  }
  return candidates;
}

DeviceConstants constants_of(const Table& trials, const std::string& label) {
  const auto device = std::ranges::find(trials.devices, label, &TableDevice::label);
  if (device == trials.devices.end()) {
    throw Error(ErrorCode::Internal, "the daemon's table", "has no device " + label);
  }
  return device_constants(device->facts);
}

Configuration default_of(const RepeatedProblem& problem, const KernelSpec& spec, const Table& trials) {
  const auto found = default_configuration(spec, problem.problem, constants_of(trials, problem.device));
  if (!found) {
    throw Error(ErrorCode::FailedPrecondition, problem.kernel + " at " + to_string(problem.problem),
                "has no default that is valid there");
  }
  return *found;
}

ProblemRegrets regrets_of(const RepeatedProblem& problem, const Configuration& by_default,
                          const std::vector<Configuration>& candidates, const Table& trials) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  ProblemRegrets regrets{std::vector(candidates.size(), kNever), kNever};
  for (const JudgedConfiguration& judged : judge(problem, trials, kRounds)) {
    const double regret = std::max(0.0, judged.regret);
    const auto place = std::ranges::find(candidates, judged.configuration);
    if (place != candidates.end()) {
      regrets.configurations[static_cast<std::size_t>(place - candidates.begin())] = regret;
    }
    if (by_default == judged.configuration) {
      regrets.of_default = regret;
    }
  }
  return regrets;
}

// What answers the problem with the set, and its regret.
std::pair<Configuration, double> served(const Chosen& chosen, const VariantSet& set, std::size_t problem) {
  const ProblemRegrets& regrets = chosen.regrets[problem];
  const std::optional<std::size_t> by = set.serves[problem];
  return by ? std::pair(chosen.candidates[*by], regrets.configurations[*by])
            : std::pair(chosen.defaults[problem], regrets.of_default);
}

class FewVariants {
 public:
  FewVariants(std::uint32_t count, double most_regret, const CommonOptions& common,
              const StopSignals& interrupt)
      : count_(count), most_regret_(most_regret), common_(common), measurement_(common, interrupt) {}

  void choose(const KernelTune& tune) {
    const std::string& kernel = tune.request.kernel();
    const auto spec = stored_spec(measurement_.connection(), kernel, common_, "");
    measurement_.tune(tune, LongMeasurement::Search::Stored);
    Chosen chosen;
    std::ranges::copy_if(measurement_.problems(), std::back_inserter(chosen.problems),
                         [&](const RepeatedProblem& one) { return one.kernel == kernel; });
    if (chosen.problems.empty()) {
      return;  // each job has failed, and was printed
    }
    chosen.candidates = candidates_of(chosen.problems, measurement_.trials_of(kernel));
    for (const RepeatedProblem& one : chosen.problems) {
      measurement_.measure(tune.request, one, chosen.candidates, kRounds);
    }
    const Table trials = measurement_.trials_of(kernel);
    for (const RepeatedProblem& one : chosen.problems) {
      chosen.defaults.push_back(default_of(one, *spec, trials));
      chosen.regrets.push_back(regrets_of(one, chosen.defaults.back(), chosen.candidates, trials));
    }
    chosen.sets = best_sets(chosen.regrets, count_);
    const auto fitting =
        std::ranges::find_if(chosen.sets, [&](const VariantSet& set) { return set.worst <= most_regret_; });
    if (fitting != chosen.sets.end()) {
      chosen.fitting = static_cast<std::size_t>(fitting - chosen.sets.begin());
      store(tune, chosen);
    }
    chosen_.push_back(std::move(chosen));
  }

  void print() const {
    if (common_.json) {
      print_document();
      return;
    }
    for (const Chosen& one : chosen_) {
      print_tables(one);
    }
  }
  ExitCode exit_code() const {
    if (measurement_.any_failed()) {
      return ExitCode::TuningFailed;
    }
    const bool all_fit =
        std::ranges::all_of(chosen_, [](const Chosen& one) { return one.fitting.has_value(); });
    return all_fit ? ExitCode::Ok : ExitCode::Failure;
  }

 private:
  // One is listed for each problem: the default is a finalist too, and wins where it serves.
  void store(const KernelTune& tune, const Chosen& chosen) {
    for (std::size_t i = 0; i < chosen.problems.size(); ++i) {
      const auto [configuration, regret] = served(chosen, chosen.sets[*chosen.fitting], i);
      measurement_.measure(tune.request, chosen.problems[i], {configuration}, 0);
    }
  }

  void print_tables(const Chosen& chosen) const {
    const std::string prefix = replay_prefix(chosen.problems.front().device);
    const std::string bound = percent(most_regret_, 1);
    std::cout << prefix << chosen.problems.front().kernel << ": ";
    if (chosen.fitting) {
      std::cout << *chosen.fitting << " variants besides the default lose at most " << bound << " at "
                << counted(chosen.problems.size(), "problem") << ": the records have these\n";
    } else {
      std::cout << "no " << count_ << " variants besides the default lose at most " << bound << " at all "
                << counted(chosen.problems.size(), "problem") << ": each record keeps its own winner\n";
    }
    TextTable curve({">VARIANTS", ">WORST_REGRET", ">MEAN_REGRET"});
    for (std::size_t size = 0; size < chosen.sets.size(); ++size) {
      curve.add(
          {std::to_string(size), percent(chosen.sets[size].worst, 2), percent(chosen.sets[size].mean, 2)});
    }
    curve.print(std::cout, output_columns(), prefix);
    if (!chosen.fitting) {
      return;
    }
    TextTable table({"PROBLEM", ">REGRET", "CONFIGURATION"});
    for (std::size_t i = 0; i < chosen.problems.size(); ++i) {
      const auto [configuration, regret] = served(chosen, chosen.sets[*chosen.fitting], i);
      table.add({to_string(chosen.problems[i].problem), percent(regret, 2), to_string(configuration)});
    }
    table.print(std::cout, output_columns(), prefix);
  }

  void print_document() const {
    OutputJson kernels = OutputJson::array();
    for (const Chosen& one : chosen_) {
      OutputJson sets = OutputJson::array();
      for (const VariantSet& set : one.sets) {
        OutputJson configurations = OutputJson::array();
        for (const std::size_t index : set.configurations) {
          configurations.push_back(json_of(one.candidates[index]));
        }
        OutputJson problems = OutputJson::array();
        for (std::size_t i = 0; i < one.problems.size(); ++i) {
          const auto [configuration, regret] = served(one, set, i);
          problems.push_back({{"problem", json_of(one.problems[i].problem)},
                              {"configuration", json_of(configuration)},
                              {"regret_ratio", finite(regret)}});
        }
        sets.push_back({{"configurations", configurations},
                        {"worst_regret_ratio", finite(set.worst)},
                        {"mean_regret_ratio", finite(set.mean)},
                        {"problems", problems}});
      }
      kernels.push_back({{"kernel", one.problems.front().kernel},
                         {"device", one.problems.front().device},
                         {"variants", one.fitting ? OutputJson(*one.fitting) : OutputJson()},
                         {"sets", sets}});
    }
    print_json({{"max_regret_ratio", most_regret_}, {"rounds", kRounds}, {"kernels", kernels}});
  }

  // JSON has no infinity: null is "not measured".
  static OutputJson finite(double value) { return std::isfinite(value) ? OutputJson(value) : OutputJson(); }

  const std::uint32_t count_;
  const double most_regret_;
  const CommonOptions& common_;
  LongMeasurement measurement_;
  std::vector<Chosen> chosen_;
};

}  // namespace

ExitCode tune_variants(const std::vector<KernelTune>& tunes, std::uint32_t count, double most_regret,
                       const CommonOptions& common) {
  const StopSignals interrupt;  // before the connection: its threads inherit the blocked signals
  FewVariants variants(count, most_regret, common, interrupt);
  for (const KernelTune& tune : tunes) {
    variants.choose(tune);
  }
  variants.print();
  return variants.exit_code();
}

}  // namespace cubind::ctl
