// `tune` in a terminal, as a person sees it: script(1) makes one of a given width.
#include <catch2/catch.hpp>
#include <csignal>

#include "tests/service/cubindctl/live.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

ProgramRun in_terminal(TinyDaemon& daemon, int columns, const std::string& command) {
  ProgramRun run;
  run.program = "/usr/bin/script";
  run.arguments = {
      "-qec",
      "stty cols " + std::to_string(columns) + "; exec " + (bin_dir() / "cubindctl").string() + " " + command,
      "/dev/null"};
  run.environment = {"CUBIND_ADDRESS=" + daemon->address(), "CUDA_VISIBLE_DEVICES=", "TERM=xterm-256color",
                     "PATH=/usr/bin:/bin"};
  return run;
}

std::string tune(const std::string& further = "") {
  return std::string("tune ") + kTinyKernel + " --problem " + text_of(tiny_problem(2)) + " " + further;
}

/// What was drawn between two returns to the line's start, without escape sequences.
std::vector<std::string> drawn(const std::string& out) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\r' || out[i] == '\n') {
      lines.emplace_back();
    } else if (out[i] == '\x1b') {
      i = out.find_first_of("KAJ", i);
    } else {
      lines.back() += out[i];
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("no line that a terminal gets is wider than it and the bar is gone at the end") {
  TinyDaemon daemon({.pace_us = 20'000});
  for (const int columns : {160, 60}) {
    const ProgramResult result = run_program(in_terminal(daemon, columns, tune("--retune")));
    REQUIRE(result.exit_code == 0);
    CHECK(result.out.find("\r\x1b[K") != std::string::npos);
    CHECK(result.out.find("[#") != std::string::npos);
    for (const std::string& line : drawn(result.out)) {
      CHECK(line.size() <= static_cast<std::size_t>(columns));
    }
    const std::string end = result.out.substr(result.out.rfind("\x1b[K") + 3);
    CHECK_THAT(end, Contains("configurations in") && !Contains("[#"));
  }
}

TEST_CASE("Ctrl-C in a narrow terminal takes the bar back and tells the job") {
  TinyDaemon daemon({.hold = true});
  ProgramRun run = in_terminal(daemon, 60, tune());
  run.until = "/12 ";
  run.then = [&](int pid) {
    for (const ProcessId& process : descendants(pid)) {
      if (process.command.find("cubindctl tune") != std::string::npos) {
        kill(process.pid, SIGINT);
      }
    }
  };
  const ProgramResult result = run_program(run);
  daemon.let_go();
  CHECK(result.exit_code == 130);
  const std::string end = result.out.substr(result.out.rfind("\x1b[K") + 3);
  CHECK_THAT(end, Contains("Detached; the daemon goes on with job ") && Contains("cubindctl jobs --watch ") &&
                      Contains("cubindctl cancel ") && !Contains("compiling"));
}

TEST_CASE("lists are readable in a narrow terminal and whole in a pipe") {
  TinyDaemon daemon;
  REQUIRE(run_program(in_terminal(daemon, 80, tune())).exit_code == 0);
  for (const std::string command : {"jobs --all", "devices", "kernels"}) {
    const ProgramResult result = run_program(in_terminal(daemon, 60, command));
    REQUIRE(result.exit_code == 0);
    for (const std::string& line : drawn(result.out)) {
      CHECK(line.size() <= 60);
    }
  }
  CHECK_THAT(run_program(in_terminal(daemon, 60, "jobs --all")).out,
             Contains("STATE  KERNEL  PROBLEM") && Contains("(a wider terminal shows KIND, "));
  const std::string explained =
      "explain " + std::string(kTinyKernel) + " --problem " + text_of(tiny_problem(2));
  const std::vector<std::string> lines = drawn(run_program(in_terminal(daemon, 80, explained)).out);
  CHECK(std::ranges::any_of(lines, [](const std::string& line) {
    return line.starts_with("  TIME_US  ") && line.ends_with("  CONFIGURATION");
  }));
  CHECK_THAT(ctl(daemon, {"jobs", "--all"}).out, Catch::StartsWith("JOB               KIND  STATE"));
  const std::vector<std::string> status = drawn(run_program(in_terminal(daemon, 60, "status")).out);
  CHECK(
      std::ranges::any_of(status, [](const std::string& line) { return line.starts_with("            "); }));
}

TEST_CASE("a terminal that takes no line back gets plain lines") {
  TinyDaemon daemon;
  ProgramRun run = in_terminal(daemon, 80, tune());
  run.environment[2] = "TERM=dumb";
  const ProgramResult result = run_program(run);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find('\x1b') == std::string::npos);
}

}  // namespace cubind::test
