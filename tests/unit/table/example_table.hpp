// A small table for tests: one device, one kernel with one tunable, two trials, one record.
#pragma once

#include "tests/support/example_facts.hpp"
#include "tests/support/facts.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

inline Problem example_problem() {
  Problem problem;
  problem.dims = {{"N", 4096}};
  problem.types = {{"T", DType::F32}};
  return problem;
}

inline TableContext example_context(std::int64_t threads) {
  TableContext context;
  context.kernel = "scale";
  context.problem = example_problem();
  context.device_class = derive_device_class(test::example_facts(), "facts").digest;
  context.policy = "cold/3,stream";
  context.configuration.values = {{"THREADS", threads}};
  context.trial = Digest::of("trial " + std::to_string(threads));
  context.driver = "580.159.04";
  context.architecture = "sm_90";
  context.artifact = Digest::of("cubin " + std::to_string(threads));
  context.toolchain = {"nvrtc 13.0", Digest::of("nvrtc"), Digest::of("builtins"), Digest::of("headers")};
  return context;
}

inline TableTrial example_trial(std::int64_t threads) {
  TableTrial trial;
  trial.context = example_context(threads);
  trial.timer = "cupti";
  trial.tick_us = 0.032;
  return trial;
}

inline Table example_table() {
  Table table;
  const DeviceClass device = derive_device_class(test::example_facts(), "facts");
  table.devices.push_back({device.digest, device.label, device.facts});

  TableTrial good = example_trial(128);
  good.resources = {test::resources_of("scale", 16)};
  good.screening = {test::block_of({2.5}), test::block_of({2.625, 2.75}, 2.5)};
  good.finals = {test::block_of({2.5, 2.5625, 2.5, 2.53125, 2.5})};
  good.verifications = {test::comparison_of(example_problem(), 0.25)};
  TableTrial wrong = example_trial(256);
  wrong.outcome = Outcome::WrongResult;
  wrong.header.set_detail("y[4095] is 0, the reference has 1");
  wrong.verifications = {test::comparison_of(example_problem(), 1e6, v1::WRONG_RESULT)};
  table.trials = {wrong, good};

  TableRecord record;
  record.context = good.context;
  record.interface = Digest::of("interface");
  record.numerics = "tolerance";
  record.driver_cuda = 13000;
  record.timing = test::timing_of(2.5, 2.5, 2.5625, 5, "2026-01-02T03:04:05Z");
  record.timing.set_sm_mhz(1980);
  record.timing.set_power_limit_mw(700000);
  record.timing.set_gain_over_default(1.25);
  record.verification = test::verified(Digest::of("verification"), "kernel", std::vector{example_problem()});
  table.records.push_back(record);
  return table;
}

}  // namespace cubind
