// Completion and manual pages as shells and readers of them take them.
#include <catch2/catch.hpp>
#include <set>

#include "base/file.hpp"
#include "tests/service/cubindctl/ctl.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;
namespace fs = std::filesystem;

ProgramResult run(const std::string& program, std::vector<std::string> arguments) {
  ProgramRun run;
  run.program = program;
  run.arguments = std::move(arguments);
  run.environment = {"PATH=" + bin_dir().string() + ":/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"};
  return run_program(run);
}

fs::path completion(const TempDir& folder, const std::string& shell) {
  const ProgramResult result = ctl("unix:///nowhere", {"completion", shell});
  REQUIRE(result.exit_code == 0);
  fs::path file = folder.path() / ("completion." + shell);
  write_file_atomic(file, result.out);
  return file;
}

/// What bash completes the words with.
std::string completed(const fs::path& script, const std::string& words) {
  const std::string program =
      "source " + script.string() + "; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cubindctl 2>/dev/null; echo \"${COMPREPLY[*]}\"";
  return run("/bin/bash", {"--norc", "-c", program}).out;
}

void check_syntax(const std::string& shell) {
  const fs::path program = fs::path("/usr/bin") / shell;
  if (!fs::exists(program)) {
    return skip_test(program.string() + " is not on this machine");
  }
  TempDir folder;
  const ProgramResult result = run(program, {"-n", completion(folder, shell)});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
}

}  // namespace

TEST_CASE("bash accepts its completion") { check_syntax("bash"); }

TEST_CASE("zsh accepts its completion") { check_syntax("zsh"); }

TEST_CASE("fish accepts its completion") { check_syntax("fish"); }

TEST_CASE("bash completes commands and options and choices") {
  TempDir folder;
  const fs::path script = completion(folder, "bash");
  CHECK(completed(script, "cubindctl ker") == "kernels\n");
  CHECK(completed(script, "cubindctl kernels ''") == "check init\n");
  CHECK(completed(script, "cubindctl --address tune get --on-miss = w") == "wait\n");
  CHECK(completed(script, "cubindctl tune --dry") == "--dry-run\n");
  CHECK(completed(script, "cubindctl tune --problem ''") == "\n");
}

TEST_CASE("fish completes values and files behind an equals sign") {
  if (!fs::exists("/usr/bin/fish")) {
    return skip_test("/usr/bin/fish is not on this machine");
  }
  TempDir folder;
  const std::string script = completion(folder, "fish");
  const auto fish = [&](const std::string& line) {
    return run("/usr/bin/fish",
               {"--no-config", "-c",
                "cd " + folder.path().string() + "; source " + script + "; complete -C '" + line + "'"})
        .out;
  };
  CHECK_THAT(fish("cubindctl ker"), StartsWith("kernels\t"));
  CHECK(fish("cubindctl get --on-miss=w") == "--on-miss=wait\n");
  CHECK(fish("cubindctl get --output=compl") == "--output=completion.fish\n");
}

TEST_CASE("a running daemon names the kernels for a completion") {
  FakeDaemon daemon;
  daemon.scripts.list_kernels = [](const v1::ListKernelsRequest&) {
    v1::ListKernelsReply reply;
    reply.add_kernels()->set_name("rmsnorm_forward");
    return reply;
  };
  std::string names;
  for (int i = 0; i < 20 && names.empty(); ++i) {  // a busy machine may not answer within the 100 ms
    names = ctl(daemon, {"__complete", "get", "r"}).out;
  }
  CHECK(names == "rmsnorm_forward\n");
  const ProgramResult nobody = ctl("unix:///nowhere", {"__complete", "get", ""});
  CHECK(nobody.exit_code == 0);
  CHECK(nobody.out + nobody.err == "");
}

TEST_CASE("every command has a manual page that man renders without a warning") {
  if (!fs::exists("/usr/bin/man")) {
    return skip_test("/usr/bin/man is not on this machine");
  }
  TempDir folder;
  REQUIRE(ctl("unix:///nowhere", {"man", "-o", folder.path() / "man1"}).exit_code == 0);
  std::set<std::string> pages;
  for (const auto& item : fs::directory_iterator(folder.path() / "man1")) {
    pages.insert(item.path().filename());
    const ProgramResult result = run("/usr/bin/man", {"--warnings", "-l", "-E", "UTF-8", item.path()});
    INFO(item.path() << ": " << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    if (fs::exists("/usr/bin/mandoc")) {
      CHECK(run("/usr/bin/mandoc", {"-Tlint", "-W", "error", item.path()}).exit_code == 0);
    }
  }
  CHECK(pages.contains("cubindctl.1"));
  CHECK(pages.contains("cubindctl-kernels-init.1"));
}

TEST_CASE("one page is printed and an unknown command is refused with what is near") {
  CHECK_THAT(ctl("unix:///nowhere", {"man", "kernels", "check"}).out,
             Contains("cubindctl\\-kernels\\-check"));
  CHECK_THAT(ctl("unix:///nowhere", {"man"}).out, Contains(".SH COMMANDS"));
  const ProgramResult result = ctl("unix:///nowhere", {"man", "kernel", "check"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("did you mean \"cubindctl kernels check\"?"));
}

}  // namespace cubind::test
