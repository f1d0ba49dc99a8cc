#include "client/cubindctl/tune/dry_run.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

struct Totals {
  std::uint64_t problems = 0, fresh = 0, measured = 0, obstacles = 0, trials = 0;
  bool timed = false;                     // of one at least the number of trials is up to the time
  std::optional<double> estimate_ms = 0;  // absent: of one at least it is unknown
};

bool is_skipped(const v1::PlannedProblem& problem, bool retune) {
  return (problem.fresh() && !retune) || !problem.obstacle().empty();
}

Totals totals_of(const v1::PlanTuneReply& plan, bool retune) {
  Totals totals;
  for (const v1::PlannedProblem& problem : plan.problems()) {
    ++totals.problems;
    totals.fresh += problem.fresh() ? 1 : 0;
    totals.obstacles += problem.obstacle().empty() ? 0 : 1;
    if (is_skipped(problem, retune)) {
      continue;
    }
    ++totals.measured;
    totals.trials += problem.trials();
    totals.timed = totals.timed || problem.trials() == 0;
    if (!problem.has_estimate_ms()) {
      totals.estimate_ms.reset();
    } else if (totals.estimate_ms) {
      *totals.estimate_ms += problem.estimate_ms();
    }
  }
  return totals;
}

using Labels = std::set<std::string>;

// The device classes that an agent offers for measurements. A job for another waits for one.
Labels offered_devices(const Connection& connection, const CommonOptions& common) {
  Labels offered;
  const v1::ListDevicesReply reply = connection.list_devices(common.deadline());
  for (const v1::DeviceClass& device : reply.devices()) {
    if (device.offered() && !device.consent().starts_with("never")) {
      offered.insert(device.label());
    }
  }
  return offered;
}

std::string state_of(const v1::PlannedProblem& problem, bool retune, const Labels& offered) {
  if (!problem.job_id().empty()) {
    return "job " + problem.job_id() + " is " + state_name(problem.job_state());
  }
  if (!problem.obstacle().empty()) {
    return "fails: " + problem.obstacle();
  }
  if (problem.fresh() && !retune) {
    return "fresh";
  }
  const std::string state = problem.fresh() ? "fresh, again" : "to measure";
  return offered.contains(problem.device()) ? state : state + ", waits";
}

// The devices for which jobs would wait.
Labels awaited_devices(const v1::PlanTuneReply& plan, bool retune, const Labels& offered) {
  Labels awaited;
  for (const v1::PlannedProblem& problem : plan.problems()) {
    if (!is_skipped(problem, retune) && !offered.contains(problem.device())) {
      awaited.insert(problem.device());
    }
  }
  return awaited;
}

std::string time_of(const v1::PlannedProblem& problem, bool retune) {
  if (is_skipped(problem, retune)) {
    return "-";
  }
  return problem.has_estimate_ms() ? rough_time(problem.estimate_ms()) : "unknown";
}

std::string summary(const Totals& totals) {
  std::string text = counted(totals.problems, "problem") + ", " + std::to_string(totals.fresh) + " fresh; ";
  if (totals.obstacles > 0) {
    text += counted(totals.obstacles, "job") + " would fail; ";
  }
  if (totals.measured == 0) {
    return text + "there is nothing to measure.";
  }
  text += totals.timed ? "as many configurations as the time allows, "
                       : counted(totals.trials, "configuration") + " to measure, ";
  text += totals.estimate_ms
              ? "about " + rough_time(*totals.estimate_ms) + " on one GPU, as earlier jobs took"
              : "time unknown: no such job has ended on this device class";
  return text + ". Nothing was started.";
}

void print(const v1::PlanTuneReply& plan, bool retune, const Labels& offered) {
  TextTable table({"KERNEL", "PROBLEM", "??DEVICE", ">VALID", ">??OF", "?STATE", ">TIME"});
  for (const v1::PlannedProblem& problem : plan.problems()) {
    table.add({problem.kernel(), to_string(problem_from_wire(problem.problem(), "problem")), problem.device(),
               (problem.at_most() ? "<= " : "") + std::to_string(problem.valid()),
               std::to_string(problem.total()), state_of(problem, retune, offered),
               time_of(problem, retune)});
  }
  const auto is_replay = [](const v1::PlannedProblem& problem) {
    return !replay_prefix(problem.device()).empty();
  };
  const bool replayed = std::ranges::all_of(plan.problems(), is_replay);
  const std::string prefix = replayed ? replay_prefix(plan.problems(0).device()) : "";
  table.print(std::cout, output_columns(), prefix);
  std::cout << prefix << summary(totals_of(plan, retune)) << "\n";
  for (const std::string& device : awaited_devices(plan, retune, offered)) {
    std::cout << prefix << "No agent offers " << device
              << " for measurements: its jobs would wait until one does.\n";
  }
}

OutputJson planned_json(const v1::PlannedProblem& problem, const Labels& offered) {
  OutputJson json{{"kernel", problem.kernel()},
                  {"problem", json_of(problem_from_wire(problem.problem(), "problem"))},
                  {"device", problem.device()},
                  {"device_measurable", offered.contains(problem.device())},
                  {"valid_configurations", problem.valid()},
                  {"at_most", problem.at_most()},
                  {"configurations", problem.total()},
                  {"trials", problem.trials()},
                  {"fresh", problem.fresh()},
                  {"estimate_ms", nullptr},
                  {"estimated_from_jobs", problem.estimated_from()}};
  if (problem.has_estimate_ms()) {
    json["estimate_ms"] = problem.estimate_ms();
  }
  if (!problem.obstacle().empty()) {
    json["obstacle"] = problem.obstacle();
  }
  if (!problem.job_id().empty()) {
    json["job"] = {{"id", problem.job_id()}, {"state", state_name(problem.job_state())}};
  }
  return json;
}

void print_as_json(const v1::PlanTuneReply& plan, bool retune, const Labels& offered) {
  OutputJson problems = OutputJson::array();
  for (const v1::PlannedProblem& problem : plan.problems()) {
    problems.push_back(planned_json(problem, offered));
  }
  const Totals totals = totals_of(plan, retune);
  OutputJson json{{"dry_run", true},
                  {"problems", problems},
                  {"fresh", totals.fresh},
                  {"trials", nullptr},
                  {"estimate_ms", nullptr}};
  if (!totals.timed) {
    json["trials"] = totals.trials;
  }
  if (totals.estimate_ms) {
    json["estimate_ms"] = *totals.estimate_ms;
  }
  print_json(json);
}

}  // namespace

ExitCode print_plan(const std::vector<KernelTune>& tunes, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  v1::PlanTuneReply plan;
  for (const KernelTune& tune : tunes) {
    with_places(tune, [&] { plan.MergeFrom(connection.plan_tune(tune.request, common.deadline())); });
  }
  const bool retune = tunes.front().request.retune();
  const Labels offered = offered_devices(connection, common);
  if (common.json) {
    print_as_json(plan, retune, offered);
  } else {
    print(plan, retune, offered);
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
