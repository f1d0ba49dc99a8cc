#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/service/cubindctl/ctl.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

int exit_code_for(ErrorCode code) {
  FakeDaemon daemon;
  daemon.scripts.get_status = [code]() -> v1::GetStatusReply { throw Error(code, "place", "cause"); };
  return ctl(daemon, {"status"}).exit_code;
}

}  // namespace

TEST_CASE("wrong usage ends with 2 and says what is wrong") {
  const ProgramResult result = ctl("unix:///nowhere", {"get"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("kernel is required"));
  CHECK(ctl("unix:///nowhere", {"status", "--bogus"}).exit_code == 2);
  CHECK(ctl("unix:///nowhere", {}).exit_code == 2);
}

TEST_CASE("an option's number has to lie within its range") {
  const std::vector<std::vector<std::string>> commands = {
      {"status", "--timeout"},
      {"tune", "k", "--problem", "N=1", "--max-seconds"},
      {"table", "check", "t.json", "--measure", "--warn"},
      {"table", "check", "t.json", "--measure", "--fail"}};
  for (std::vector<std::string> words : commands) {
    words.emplace_back();
    for (const char* number : {"nan", "inf", "-1", "", "1e400"}) {
      words.back() = number;
      const ProgramResult result = ctl("unix:///nowhere", words);
      CHECK(result.exit_code == 2);
      CHECK_THAT(result.err, Catch::Contains("\"" + std::string(number) + "\" is not a number from 0.0"));
    }
  }
}

TEST_CASE("an unknown command is reported with the nearest one") {
  const ProgramResult result =
      ctl("unix:///nowhere", {"--timeout", "5", "tunee", "scale", "--problem", "N=1"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err,
             Catch::StartsWith("cubindctl: \"tunee\" is not a command, did you mean \"tune\"?\n"));
  CHECK(result.out.empty());
  CHECK_THAT(ctl("unix:///nowhere", {"kernels", "chek", "k.json"}).err,
             Catch::StartsWith("cubindctl kernels: \"chek\" is not a command, did you mean \"check\"?"));
  CHECK_THAT(ctl("unix:///nowhere", {"table"}).err, !Catch::Contains("is not a command"));
  CHECK_THAT(ctl("unix:///nowhere", {"xyzzyx"}).err, Catch::Contains("is not a command (known: \"tune\""));
}

TEST_CASE("an unknown option is no unknown command") {
  CHECK_THAT(ctl("unix:///nowhere", {"--bogus", "status"}).err, !Catch::Contains("is not a command"));
  CHECK_THAT(ctl("unix:///nowhere", {"status", "more"}).err, !Catch::Contains("is not a command"));
}

TEST_CASE("an unknown option or word is reported by itself") {
  const auto complaint = [](std::vector<std::string> words) {
    const ProgramResult result = ctl("unix:///nowhere", std::move(words));
    CHECK(result.exit_code == 2);
    return result.err.substr(0, result.err.find('\n'));
  };
  CHECK(complaint({"get", "k", "--problem", "N=1", "--devic", "nvidia-h200"}) ==
        "cubindctl get: \"--devic\" is not an option, did you mean \"--device\"?");
  CHECK(complaint({"get", "k", "--problem", "N=1", "--timout=3"}) ==
        "cubindctl get: \"--timout\" is not an option, did you mean \"--timeout\"?");
  CHECK(complaint({"kernels", "check", "k.json", "--problem", "N=1", "T=f32"}) ==
        "cubindctl kernels check: \"T=f32\" is one word too many: a problem is one word, as in --problem "
        "N=4096,T=bf16");
  CHECK(complaint({"tune", "k", "N=1,T=f32"}) ==
        "cubindctl tune: \"N=1,T=f32\" is one word too many: a problem is one word, as in --problem "
        "N=4096,T=bf16");
  CHECK(complaint({"get", "k", "N=1,T=f32"}) ==
        "cubindctl get: \"N=1,T=f32\" is one word too many: a problem is one word, as in --problem "
        "N=4096,T=bf16");
  CHECK(complaint({"devices", "N=1"}) == "cubindctl devices: \"N=1\" is one word too many");
  CHECK(complaint({"get", "k"}) ==
        "cubindctl get: --problem is required: PROBLEM, dims and types of one call: N=4096,D=4096,T=bf16; "
        "several "
        "print a table");
  CHECK(complaint({"completion"}) == "cubindctl completion: shell is required: one of bash, zsh");
  CHECK(complaint({"completion", "tcsh"}) == "cubindctl completion: shell: \"tcsh\" is not one of bash, zsh");
  CHECK(complaint({"token"}) == "cubindctl token: a command is required: one of new, list, revoke");
}

TEST_CASE("a value that is none of an option's choices is reported with them") {
  const auto complaint = [](const char* option, const char* value) {
    return ctl("unix:///nowhere", {"get", "k", "--problem", "N=1", option, value}).err;
  };
  CHECK_THAT(complaint("--on-miss", "serv"),
             Catch::StartsWith("cubindctl get: --on-miss: \"serv\" is not one of serve, wait, fail\n"));
  CHECK_THAT(complaint("--tune", "maybe"), Catch::Contains("\"maybe\" is not one of auto, never, sealed\n"));
}

TEST_CASE("an empty path is refused with its option") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"get", "scale", "--problem", "N=1", "-o", ""}, {"export", "-o", ""}, {"import", ""}}) {
    const ProgramResult result = ctl("unix:///nowhere", arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Catch::Contains(arguments.front() == "import" ? "file: " : "--output: ") &&
                               Catch::Contains("the path is empty"));
  }
}

TEST_CASE("an empty id of a job is refused") {
  const FakeDaemon daemon;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"jobs", "show", ""}, {"explain", ""}}) {
    const ProgramResult result = ctl(daemon, arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Catch::Contains("id: is empty"));
  }
}

TEST_CASE("help is printed on standard output and tells the exit codes and where the pages are") {
  const ProgramResult result = ctl("unix:///nowhere", {"--help"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("130  Ctrl-C") && Catch::Contains("\nThe pages are in /"));
}

TEST_CASE("without a running daemon the message says how to start one and the exit code is 3") {
  const ProgramResult result = ctl("unix:///nowhere/cubind.sock", {"status"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.err,
             Catch::Contains("/nowhere/cubind.sock") && Catch::Contains("Start one with `cubind &`"));
  CHECK(result.out.empty());
}

TEST_CASE("a daemon's code becomes the exit code of the documentation") {
  CHECK(exit_code_for(ErrorCode::InvalidArgument) == 2);
  CHECK(exit_code_for(ErrorCode::Unavailable) == 3);
  CHECK(exit_code_for(ErrorCode::NotFound) == 4);
  CHECK(exit_code_for(ErrorCode::DeadlineExceeded) == 6);
  CHECK(exit_code_for(ErrorCode::ResourceExhausted) == 7);
  CHECK(exit_code_for(ErrorCode::FailedPrecondition) == 7);
  CHECK(exit_code_for(ErrorCode::DataLoss) == 1);
}

TEST_CASE("a deadline that passes ends with 6") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return v1::GetStatusReply();
  };
  CHECK(ctl(daemon, {"status", "--timeout", "0.1"}).exit_code == 6);
}

TEST_CASE("the address of the command line goes before that of the environment") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] { return v1::GetStatusReply(); };
  CHECK(ctl("unix:///nowhere", {"--address", daemon.address(), "status"}).exit_code == 0);
  CHECK(ctl("unix:///nowhere", {"status", "--address", daemon.address()}).exit_code == 0);
}

TEST_CASE("an address of neither form is refused with 2") {
  const ProgramResult result = ctl("localhost", {"status"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("neither unix:///path/to/socket nor host:port"));
}

TEST_CASE("output that could not be written is a failure with the reason") {
  for (const char* to : {">/dev/full", ">&-"}) {
    ProgramRun run;
    run.program = "/bin/sh";
    run.arguments = {"-c", (bin_dir() / "cubindctl").string() + " --help " + to};
    const ProgramResult result = run_program(run);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Catch::Contains("standard output"));
  }
}

TEST_CASE("a reader that closes the pipe ends the program without a word") {
  ProgramRun run;
  run.program = "/bin/sh";
  // As the console scripts of Python do, whose interpreter ignores the signal.
  run.arguments = {"-c", "trap '' PIPE; { sleep 0.3; " + (bin_dir() / "cubindctl").string() +
                             " --help; echo \"code $?\" >&2; } | true"};
  const ProgramResult result = run_program(run);
  CHECK_THAT(result.err, Catch::Contains("code 141") && !Catch::Contains("standard output"));
}

}  // namespace cubind::test
