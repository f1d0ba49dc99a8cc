#include "client/cubindctl/repeat.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/choices.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/progress.hpp"
#include "client/cubindctl/progress_bar.hpp"
#include "client/cubindctl/stop_signals.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/cubindctl/text_table.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/table/table.hpp"

namespace cubind::ctl {
namespace {

constexpr std::uint32_t kRounds = 500;
constexpr std::size_t kFastest = 16;  // measured together with the choices

class Repeating {
 public:
  Repeating(const std::vector<KernelTune>& tunes, const CommonOptions& common, const StopSignals& interrupt)
      : tunes_(tunes), common_(common), interrupt_(interrupt), connection_(resolve_address(common.address)) {}

  void choose(std::uint32_t number, std::uint32_t count) {
    for (const KernelTune& tune : tunes_) {
      v1::TuneRequest request = tune.request;
      request.set_from_scratch(true);
      with_places(tune, [&] { run(request); });
    }
    if (!common_.json) {
      std::cout << prefix() << "repetition " << number << " of " << count << "\n" << std::flush;
    }
  }

  void judge_all() {
    for (const KernelTune& tune : tunes_) {
      const Table before = trials_of(tune.request.kernel());
      for (RepeatedProblem& one : repeated_) {
        if (one.kernel == tune.request.kernel()) {
          measure(tune.request, one, before);
        }
      }
      const Table after = trials_of(tune.request.kernel());
      for (RepeatedProblem& one : repeated_) {
        if (one.kernel == tune.request.kernel()) {
          judged_.emplace_back(&one, judge(one, after, kRounds));
        }
      }
    }
  }

  void print() const { common_.json ? print_document() : print_table(); }
  bool any_failed() const { return any_failed_; }

 private:
  using Judged = std::pair<const RepeatedProblem*, std::vector<JudgedConfiguration>>;

  void run(const v1::TuneRequest& request) {
    connection_.tune(
        request, [&](const v1::TuneEvent& event) { note(event); }, interrupt_.token(), common_.timeout);
  }

  void note(const v1::TuneEvent& event) {
    if (!has_ended(event.job().state())) {
      return;
    }
    if (event.job().state() != v1::Job::DONE || !event.has_winner()) {
      any_failed_ = true;
      std::cerr << result_text(event) << "\n";
      return;
    }
    if (measures_choices_) {
      return;
    }
    const Problem problem = problem_from_wire(event.job().problem(), "job.problem");
    auto known = std::ranges::find_if(repeated_, [&](const RepeatedProblem& one) {
      return one.kernel == event.job().kernel() && one.problem == problem;
    });
    if (known == repeated_.end()) {
      repeated_.push_back({event.job().kernel(),
                           problem,
                           to_string(policy_from_wire(event.job().policy())),
                           event.job().device(),
                           {}});
      known = std::prev(repeated_.end());
    }
    known->choices.push_back(configuration_from_wire(event.winner(), "winner"));
  }

  void measure(v1::TuneRequest request, const RepeatedProblem& one, const Table& trials) {
    request.clear_problems();
    request.clear_max_trials();
    request.clear_max_seconds();
    to_wire(one.problem, *request.add_problems());
    for (const Configuration& configuration : to_measure(one, trials, kFastest)) {
      to_wire(configuration, *request.add_listed());
    }
    request.set_rounds(kRounds);
    measures_choices_ = true;
    run(request);
  }

  Table trials_of(const std::string& kernel) const {
    v1::ExportTableRequest request;
    request.add_kernels(kernel);
    request.set_device(repeated_.empty() ? "" : repeated_.front().device);
    request.set_all_trials(true);
    request.set_include_samples(true);
    request.set_include_replayed(true);
    return read_table(connection_.export_table(request, common_.deadline()).json(), "the daemon's table");
  }

  void print_table() const {
    TextTable table({"KERNEL", "PROBLEM", ">CHOICES", ">FLIPS", ">TIME_US", ">REGRET", "CONFIGURATION"});
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

  std::string prefix() const { return repeated_.empty() ? "" : replay_prefix(repeated_.front().device); }

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
  const StopSignals& interrupt_;
  const Connection connection_;
  std::vector<RepeatedProblem> repeated_;
  std::vector<Judged> judged_;
  bool measures_choices_ = false;
  bool any_failed_ = false;
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
