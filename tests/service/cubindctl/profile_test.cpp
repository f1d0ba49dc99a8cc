// cubindctl profile with a program instead of ncu, which prints a table in the form of ncu 2025.3.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/text.hpp"
#include "schemas/worker.pb.h"
#include "tests/service/cubindctl/live.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

// Copies the log to where --log-file says, and keeps its arguments.
constexpr const char* kFakeNcu = R"(#!/bin/sh
printf '%s\n' "$@" > FOLDER/arguments
while [ "$1" != --log-file ]; do shift; done
cat FOLDER/recorded.csv > "$2"
)";

struct ProfileFixture {
  ProfileFixture() {
    fs::create_directory(folder.path() / "bin");
    const Json answer = ctl_json(daemon, {"get", kTinyKernel, "--problem", problem});
    symbol = answer["launches"][0]["entry_symbol"];
    record(replaced(read_file(source_dir() / "tests/golden/ncu/rmsnorm.csv"), "SYMBOL", symbol));
  }
  void record(const std::string& log) { write_file_atomic(folder.path() / "recorded.csv", log); }
  void install_ncu() {
    write_file_atomic(folder.path() / "bin/ncu", replaced(kFakeNcu, "FOLDER", folder.path().string()), 0755);
  }
  // A spec on disk that says what the kernel has to move.
  void say_work(const std::string& work) {
    const fs::path file = daemon.kernels() / "scale.json";
    write_file_atomic(file,
                      replaced(read_file(file), R"("reference")", R"("work": )" + work + R"(, "reference")"));
  }
  ProgramResult profile(std::vector<std::string> more = {}) {
    ProgramRun run;
    run.program = "cubindctl";
    run.arguments = {"profile", kTinyKernel, "--problem", problem};
    if (std::ranges::find(more, "--csv") == more.end()) {
      run.arguments.insert(run.arguments.end(), {"-o", launch_file()});
    }
    run.arguments.insert(run.arguments.end(), more.begin(), more.end());
    run.environment = {"CUBIND_ADDRESS=" + daemon->address(), "CUDA_VISIBLE_DEVICES=",
                       "PATH=" + (folder.path() / "bin").string() + ":/usr/bin:/bin"};
    return run_program(run);
  }
  std::string launch_file() const { return folder.path() / "scale.launch"; }

  TinyDaemon daemon;
  TempDir folder;
  const std::string problem = "N=4096,K=2,T=f32";
  std::string symbol;
};

TEST_CASE_METHOD(ProfileFixture, "profile launches the served cubin under ncu and diagnoses its counters") {
  install_ncu();
  say_work(R"({"bytes": "8*N", "unfused_bytes": "16*N"})");
  const ProgramResult result = profile();
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("diagnosis     memory-bound with excess traffic: the memory runs at 71 %"));
  CHECK_THAT(result.out, Contains("match         default: this is not the winner of the problem's own"));
  CHECK_THAT(result.out, Contains("25.38 us by ncu") && Contains("bytes moved   61.88 MB"));
  CHECK_THAT(result.out, Contains("must move     0.03 MB") && Contains("unfused       0.07 MB"));
  CHECK_THAT(result.out, Contains("long_scoreboard 31.8, barrier 9.5, wait 4.1"));
  v1::LaunchFile file;
  REQUIRE(file.ParseFromString(read_file(launch_file())));
  CHECK(file.plan().launches(0).entry_symbol() == symbol);
  CHECK(file.problem().buffers(0).fill().kind() == "normal");
  CHECK(file.problem().buffers(1).elements() == 4096);
  CHECK_FALSE(file.cubin().empty());
  CHECK_THAT(read_file(folder.path() / "arguments"), Contains("\nlaunch\n" + launch_file() + "\n"));
}

TEST_CASE_METHOD(ProfileFixture, "profile prints one document with what it knows") {
  install_ncu();
  const Json document = Json::parse(profile({"--json"}).out);
  CHECK(document["diagnosis"]["rule"] == "memory_peak");
  CHECK(document["launches"][0]["entry_symbol"] == symbol);
  CHECK(document["launches"][0]["read_bytes"] == 33566720.0);
  CHECK(document["launches"][0]["blocks_per_sm"]["registers"] == 4.0);
  CHECK(document["launches"][0]["stalls"][0]["reason"] == "long_scoreboard");
  CHECK_FALSE(document.contains("must_move_bytes"));
}

TEST_CASE_METHOD(ProfileFixture, "without ncu the launcher is written and the command is printed") {
  if (fs::exists("/usr/local/cuda/bin/ncu") || fs::exists("/usr/bin/ncu")) {
    return skip_test("this machine has ncu");
  }
  const ProgramResult result = profile();
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, Contains("ncu --log-file scale.csv") && Contains("--csv scale.csv"));
  CHECK(fs::exists(launch_file()));
}

TEST_CASE_METHOD(ProfileFixture, "what ncu printed elsewhere is read from a file") {
  const ProgramResult result = profile({"--csv", folder.path() / "recorded.csv"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("must move     unknown: the spec does not say work.bytes"));
  CHECK_FALSE(fs::exists(launch_file()));
}

TEST_CASE_METHOD(ProfileFixture, "each way in which ncu sees nothing is an error of its own") {
  install_ncu();
  record("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n");
  const ProgramResult refused = profile();
  CHECK(refused.exit_code == 7);
  CHECK_THAT(refused.err, Contains("may not read the GPU's counters"));
  record("==WARNING== No kernels were profiled.\n");
  const ProgramResult unseen = profile();
  CHECK(unseen.exit_code == 7);
  CHECK_THAT(unseen.err, Contains("ncu saw no launch of the kernel (No kernels were profiled.)"));
}

TEST_CASE_METHOD(ProfileFixture, "counters of another kernel are refused with both names") {
  install_ncu();
  record(read_file(source_dir() / "tests/golden/ncu/rmsnorm.csv"));
  const ProgramResult result = profile();
  CHECK(result.exit_code == 7);
  CHECK_THAT(result.err, Contains("other launches (SYMBOL) than the variant has (" + symbol + ")"));
}

}  // namespace
}  // namespace cubind::test
