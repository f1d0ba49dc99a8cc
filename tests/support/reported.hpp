// What a daemon knows after tuning the tiny kernel, as a report gets it.
#pragma once

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "client/cubindctl/report/report_data.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/tiny_kernel.hpp"

namespace cubind::test {

// Two problems of the tiny kernel: the first has a record, one trial that failed, and finals of its winner
// and of the default, which takes a quarter longer.
struct Reported {
  Reported() {
    write_tiny_kernel(folder.path());
    input.spec = load_kernel_spec((folder.path() / "scale.json").string());
    input.kernel = kTinyKernel;
    input.created_at = "2026-01-31T09:15:00.000Z";
    input.table = tiny_table({problem, tiny_problem(3)});
    TableTrial& winner = trial(256, 4);
    TableTrial& plain = trial(128, 1);
    winner.finals.clear();
    plain.finals.clear();
    for (int round = 0; round < 20; ++round) {
      winner.finals.push_back(block_of({100.0 + round % 3}, 0, 0));
      plain.finals.push_back(block_of({125.0 + round % 3}, 0, 0));
    }
    trial(32, 4).outcome = Outcome::Runtime;
    trial(32, 4).header.set_detail("illegal address");
    TableRecord record;
    record.context = winner.context;
    record.numerics = "tolerance";
    record.timing.set_median_us(101);
    record.timing.set_low_us(101);
    record.timing.set_high_us(101);
    record.timing.set_samples(20);
    record.timing.set_gain_over_default(1.25);
    record.timing.set_measured_at("2026-01-30T09:15:00.000Z");
    input.table.records.push_back(record);
  }

  TableTrial& trial(std::int64_t threads, std::int64_t vector) {
    return trial_of(input.table, problem, {{{"THREADS", threads}, {"VECTOR", vector}}});
  }
  ctl::ExplainedQuestion question() const {
    return {kTinyKernel, problem, trial_policy(), "tolerance", "", input.table.devices.at(0).device_class};
  }
  std::string trial_policy() const { return input.table.trials.at(0).context.policy; }
  ctl::OutputJson data() const { return ctl::report_data(input); }

  const Problem problem = tiny_problem(2);
  TempDir folder;
  ctl::ReportInput input;
};

}  // namespace cubind::test
