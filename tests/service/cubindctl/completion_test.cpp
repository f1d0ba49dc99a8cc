// Completion as shells take it.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/ctl.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

ProgramResult shell(const std::string& program, std::vector<std::string> arguments) {
  ProgramRun run;
  run.program = program;
  run.arguments = std::move(arguments);
  run.environment = {"PATH=" + bin_dir().string() + ":/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"};
  return run_program(run);
}

ProgramResult completed(const FakeDaemon& daemon, const std::string& line) {
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = {"__complete"};
  run.environment = {"CUBIND_ADDRESS=" + daemon.address(), "COMP_LINE=" + line,
                     "COMP_POINT=" + std::to_string(line.size())};
  return run_program(run);
}

}  // namespace

TEST_CASE("bash completes a command") {
  const ProgramResult result =
      shell("/bin/bash", {"--norc", "-c",
                          R"(printf 'source <(cubindctl completion bash)\ncubindctl kernels in\t --help\n' |
                             /bin/bash --norc -i)"});
  CHECK_THAT(result.out, Catch::Contains("Usage: cubindctl kernels init"));
}

TEST_CASE("zsh asks for what may follow a word") {
  if (!std::filesystem::exists("/usr/bin/zsh")) {
    return skip_test("/usr/bin/zsh is not on this machine");
  }
  const ProgramResult result =
      shell("/usr/bin/zsh", {"-f", "-c",
                             R"(autoload -U compinit && compinit -D; source <(cubindctl completion zsh)
                          compadd() { print -r -- "$@" }
                          words=(cubindctl get --on-miss w); CURRENT=4; PREFIX=w; eval $_comps[cubindctl])"});
  CHECK_THAT(result.out, Catch::StartsWith("- wait\n"));
  CHECK(result.err.empty());
}

TEST_CASE("a running daemon names the kernels for a completion, without those that are more than a word") {
  FakeDaemon daemon;
  daemon.scripts.list_kernels = [](const v1::ListKernelsRequest&) {
    v1::ListKernelsReply reply;
    for (const char* name : {"rmsnorm_forward", "r$(reboot)", "r m", "r\nm"}) {
      reply.add_kernels()->set_name(name);
    }
    return reply;
  };
  std::string names;
  for (int i = 0; i < 20 && names.empty(); ++i) {  // a busy machine may not answer within the 100 ms
    names = completed(daemon, "cubindctl get r").out;
  }
  CHECK(names == "rmsnorm_forward\n");
  CHECK(shell("cubindctl", {"__complete"}).err ==
        "cubindctl: COMP_LINE: is not set: a shell's completion sets it\n");
}

}  // namespace cubind::test
