// Running a program of ours to its end.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace cubind::test {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal where one ended it
  std::string out;
  std::string err;
};

struct ProgramRun {
  std::string program;  // name in the build's bin/, or a path
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value"
  std::chrono::seconds limit{60};        // then it is killed and the exit code is 137
  /// Called with the process's id once standard output holds this text; empty: never.
  std::string until;
  std::function<void(int pid)> then;
};

ProgramResult run_program(const ProgramRun& run);

}  // namespace cubind::test
