// cubindctl as a process, and replies for it.
#pragma once

#include "tests/fakes/fake_daemon.hpp"
#include "tests/fakes/program_run.hpp"

namespace cubind::test {

inline ProgramResult ctl(const std::string& address, std::vector<std::string> arguments) {
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = std::move(arguments);
  run.environment = {"CUBIND_ADDRESS=" + address, "CUDA_VISIBLE_DEVICES="};
  return run_program(run);
}

inline ProgramResult ctl(const FakeDaemon& daemon, std::vector<std::string> arguments) {
  return ctl(daemon.address(), std::move(arguments));
}

}  // namespace cubind::test
