// cubindctl against a real daemon that plays the tiny kernel's table.
#pragma once

#include "base/json.hpp"
#include "tests/service/cubindctl/ctl.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {

inline ProgramResult ctl(TinyDaemon& daemon, std::vector<std::string> arguments) {
  return ctl(daemon->address(), std::move(arguments));
}

/// What the command prints with --json; fails the test where it ends with another code than 0.
inline Json ctl_json(TinyDaemon& daemon, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ProgramResult result = ctl(daemon, std::move(arguments));
  if (result.exit_code != 0) {
    throw std::runtime_error("exit code " + std::to_string(result.exit_code) + ": " + result.err);
  }
  return Json::parse(result.out);
}

/// The records that the daemon has, as if they had come with cubind for a real GPU.
inline void import_shipped(TinyDaemon& daemon) {
  Table table = daemon.as_of_a_real_gpu();
  table.trials.clear();
  for (TableRecord& record : table.records) {
    record.evidence = Evidence::Shipped;
  }
  daemon->connect().import_table(print_table(table), "shipped.json", "", kPatience);
}

inline std::string text_of(const Problem& problem) { return to_string(problem); }

}  // namespace cubind::test
