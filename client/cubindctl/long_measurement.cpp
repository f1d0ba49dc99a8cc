#include "client/cubindctl/long_measurement.hpp"

#include <algorithm>
#include <iostream>

#include "client/cubindctl/progress.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {

LongMeasurement::LongMeasurement(const CommonOptions& common, const StopSignals& interrupt)
    : common_(common), interrupt_(interrupt), connection_(resolve_address(common.address)) {}

void LongMeasurement::tune(const KernelTune& tune, Search search) {
  v1::TuneRequest request = tune.request;
  request.set_from_scratch(search == Search::FromScratch);
  notes_choices_ = true;
  with_places(tune, [&] { run(request); });
}

void LongMeasurement::measure(const v1::TuneRequest& like, const RepeatedProblem& one,
                              const std::vector<Configuration>& listed, std::uint32_t rounds) {
  v1::TuneRequest request = like;
  request.clear_problems();
  request.clear_max_trials();
  request.clear_max_seconds();
  to_wire(one.problem, *request.add_problems());
  for (const Configuration& configuration : listed) {
    to_wire(configuration, *request.add_listed());
  }
  request.set_rounds(rounds);
  notes_choices_ = false;
  run(request);
}

Table LongMeasurement::trials_of(const std::string& kernel, const std::string& device) const {
  v1::ExportTableRequest request;
  request.add_kernels(kernel);
  request.set_device(device.empty() && !problems_.empty() ? problems_.front().device : device);
  request.set_all_trials(true);
  request.set_include_samples(true);
  request.set_include_replayed(true);
  return read_table(connection_.export_table(request, common_.deadline()).json(), "the daemon's table");
}

void LongMeasurement::run(const v1::TuneRequest& request) {
  connection_.tune(
      request, [&](const v1::TuneEvent& event) { note(event); }, interrupt_.token(), common_.timeout);
}

void LongMeasurement::note(const v1::TuneEvent& event) {
  if (!has_ended(event.job().state())) {
    return;
  }
  if (event.job().state() != v1::Job::DONE || !event.has_winner()) {
    any_failed_ = true;
    std::cerr << result_text(event) << "\n";
    return;
  }
  if (!notes_choices_) {
    return;
  }
  const Problem problem = problem_from_wire(event.job().problem(), "job.problem");
  auto known = std::ranges::find_if(problems_, [&](const RepeatedProblem& one) {
    return one.kernel == event.job().kernel() && one.problem == problem;
  });
  if (known == problems_.end()) {
    problems_.push_back({event.job().kernel(),
                         problem,
                         to_string(policy_from_wire(event.job().policy())),
                         event.job().device(),
                         {}});
    known = std::prev(problems_.end());
  }
  known->choices.push_back(configuration_from_wire(event.winner(), "winner"));
}

}  // namespace cubind::ctl
