#include "client/cubindctl/repeat.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/long_measurement.hpp"
#include "client/cubindctl/progress_bar.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/cubindctl/text_table.hpp"

namespace cubind::ctl {
namespace {

constexpr std::uint32_t kRounds = 500;
constexpr std::size_t kFastest = 16;  // measured together with the choices

class Repeating {
 public:
  Repeating(const std::vector<KernelTune>& tunes, const CommonOptions& common, const StopSignals& interrupt)
      : tunes_(tunes), common_(common), measurement_(common, interrupt) {}

  void choose(std::uint32_t number, std::uint32_t count) {
    for (const KernelTune& tune : tunes_) {
      measurement_.tune(tune, LongMeasurement::Search::FromScratch);
    }
    if (!common_.json) {
      std::cout << prefix() << "repetition " << number << " of " << count << "\n" << std::flush;
    }
  }

  void judge_all() {
    for (const KernelTune& tune : tunes_) {
      const std::string& kernel = tune.request.kernel();
      const Table before = measurement_.trials_of(kernel);
      for (const RepeatedProblem& one : measurement_.problems()) {
        if (one.kernel == kernel) {
          measurement_.measure(tune.request, one, to_measure(one, before, kFastest), kRounds);
        }
      }
      const Table after = measurement_.trials_of(kernel);
      for (const RepeatedProblem& one : measurement_.problems()) {
        if (one.kernel == kernel) {
          judged_.emplace_back(&one, judge(one, after, kRounds));
        }
      }
    }
  }

  void print() const { common_.json ? print_document() : print_table(); }
  bool any_failed() const { return measurement_.any_failed(); }

 private:
  using Judged = std::pair<const RepeatedProblem*, std::vector<JudgedConfiguration>>;

  void print_table() const {
    TextTable table({"KERNEL", "PROBLEM", ">?CHOICES", ">?FLIPS", ">TIME_US", ">REGRET", "CONFIGURATION"});
    for (const auto& [one, all] : judged_) {
      for (const JudgedConfiguration& judged : all) {
        if (judged.chosen > 0) {
          table.add({one->kernel, to_string(one->problem), std::to_string(judged.chosen),
                     std::to_string(flips(one->choices)), fixed(judged.time_us, 3),
                     fixed(100 * judged.regret, 2) + " %", to_string(judged.configuration)});
        }
      }
    }
    table.print(std::cout, output_columns(), prefix());
  }

  std::string prefix() const {
    const auto& problems = measurement_.problems();
    return problems.empty() ? "" : replay_prefix(problems.front().device);
  }

  void print_document() const {
    OutputJson problems = OutputJson::array();
    for (const auto& [one, all] : judged_) {
      OutputJson configurations = OutputJson::array();
      for (const JudgedConfiguration& judged : all) {
        configurations.push_back({{"configuration", json_of(judged.configuration)},
                                  {"chosen", judged.chosen},
                                  {"time_us", judged.time_us},
                                  {"regret_ratio", judged.regret}});
      }
      problems.push_back({{"kernel", one->kernel},
                          {"problem", json_of(one->problem)},
                          {"device", one->device},
                          {"choices", one->choices.size()},
                          {"flips", flips(one->choices)},
                          {"configurations", configurations}});
    }
    print_json({{"rounds", kRounds}, {"problems", problems}});
  }

  const std::vector<KernelTune>& tunes_;
  const CommonOptions& common_;
  LongMeasurement measurement_;
  std::vector<Judged> judged_;
};

}  // namespace

ExitCode repeat_tunes(const std::vector<KernelTune>& tunes, std::uint32_t count,
                      const CommonOptions& common) {
  const StopSignals interrupt;  // before the connection: its threads inherit the blocked signals
  Repeating repeating(tunes, common, interrupt);
  for (std::uint32_t number = 1; number <= count; ++number) {
    repeating.choose(number, count);
  }
  repeating.judge_all();
  repeating.print();
  return repeating.any_failed() ? ExitCode::TuningFailed : ExitCode::Ok;
}

}  // namespace cubind::ctl
