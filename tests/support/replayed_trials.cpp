#include "tests/support/replayed_trials.hpp"
#include "tests/support/facts.hpp"

#include <utility>

#include "tests/support/example_facts.hpp"
#include "tuner/spec/device_class.hpp"

namespace cubind::test {

TableTrial replayed_trial(const std::string& kernel, const Problem& problem,
                          const Configuration& configuration, double time_us) {
  TableTrial trial;
  trial.context.kernel = kernel;
  trial.context.problem = problem;
  trial.context.device_class = derive_device_class(example_facts(), "facts").digest;
  trial.context.policy = "cold/3,stream";
  trial.context.configuration = configuration;
  trial.context.trial = Digest::of("trial " + to_string(trial.context.configuration));
  trial.context.driver = "580.159.04";
  trial.context.architecture = "sm_90";
  trial.timer = "cupti";
  trial.tick_us = 0.032;
  trial.context.toolchain = {"nvrtc 13.0", Digest::of("nvrtc"), Digest::of("builtins"),
                             Digest::of("headers")};
  trial.screening = {block_of({time_us, time_us * 1.01, time_us * 1.005})};
  trial.finals = {block_of({time_us, time_us * 1.002, time_us * 0.999, time_us * 1.001, time_us})};
  trial.verifications = {comparison_of(problem, 0.25)};
  return trial;
}

std::string replayed_table(std::vector<TableTrial> trials) {
  Table table;
  const DeviceClass device = derive_device_class(example_facts(), "facts");
  table.devices.push_back({device.digest, device.label, device.facts});
  table.trials = std::move(trials);
  return print_table(table);
}

}  // namespace cubind::test
