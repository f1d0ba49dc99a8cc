// The kernel "rows" for the tests' Triton, and a table of it. Needs cubind_agent_lib and cubind_test_daemon.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/replayed_trials.hpp"
#include "tests/support/triton_kernel.hpp"
#include "tuner/agent/compile/compile_service.hpp"

namespace cubind::test {

inline const Problem kRowsProblem{{{"N", 4096}}, {}, {}, ""};

inline Configuration rows_configuration(std::int64_t index) { return {{{"CONFIG", index}}}; }

/// The tests' Triton, for the recorded device.
inline TritonTarget real_target() {
  CompileServiceOptions options;
  options.program = triton_program(triton_python(), triton_worker());
  options.slots = std::make_shared<CompileSlots>(1);
  const v1::Toolchain told = CompileService(options).probe();
  const auto at = std::ranges::find(told.architectures(), "sm_90") - told.architectures().begin();
  return {told.name().substr(told.name().find(' ') + 1), told.assemblers(static_cast<int>(at)), "sm_90"};
}

/// Configuration 2 is the fastest.
inline std::string rows_table(const std::string& kernel) {
  std::vector<TableTrial> trials;
  for (const auto& [index, time_us] : {std::pair(0, 20.0), std::pair(1, 15.0), std::pair(2, 10.0)}) {
    trials.push_back(replayed_trial(kernel, kRowsProblem, rows_configuration(index), time_us));
  }
  return replayed_table(std::move(trials));
}

}  // namespace cubind::test
