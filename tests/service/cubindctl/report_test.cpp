// cubindctl report on what a daemon has tuned.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

constexpr const char* kReportFaults =
    R"([{"at": "measure", "fault": "illegal_address", "configuration": {"THREADS": 32, "VECTOR": 4}}])";

struct ReportFixture {
  std::string tuned(std::int64_t factor) {
    return ctl_json(daemon,
                    {"tune", kTinyKernel, "--problem", text_of(tiny_problem(factor))})["jobs"][0]["id"];
  }

  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}, .faults = kReportFaults}};
};

TEST_CASE_METHOD(ReportFixture, "a report has what was tuned and the page has the same data") {
  tuned(2);
  const std::string file = (daemon.folder() / "report.html").string();
  const Json report = ctl_json(daemon, {"report", kTinyKernel, "-o", file});
  REQUIRE(report["records"].size() == 1);
  CHECK(report["records"][0]["evidence"] == "replayed");
  REQUIRE(report["tunings"].size() == 1);
  CHECK(report["tunings"][0]["best"].size() == kTinyConfigurations - 1);
  CHECK(report["tunings"][0]["best"][1].contains("judged_against_us"));
  REQUIRE(report["jobs"].size() == 1);
  CHECK_FALSE(report["jobs"][0]["stages_ms"].empty());
  CHECK_THAT(read_file(file), Contains("\"tunings\":[{\"kernel\":\"scale\""));
}

TEST_CASE_METHOD(ReportFixture, "a report is of a kernel, a job or all kernels") {
  const std::string job = tuned(2);
  tuned(3);
  CHECK(ctl_json(daemon, {"report", kTinyKernel})["tunings"].size() == 2);
  const Json one = ctl_json(daemon, {"report", "--job", job});
  CHECK(one["records"].size() == 1);
  CHECK(one["tunings"].size() == 1);
  CHECK(one["jobs"].size() == 1);
  CHECK(one["jobs"][0]["id"] == job);
  const Json all = ctl_json(daemon, {"report", "--all"});
  CHECK(all["records"].size() == 2);
  CHECK(all["tunings"].empty());
  CHECK(ctl(daemon, {"report"}).exit_code == 2);
  const ProgramResult unknown = ctl(daemon, {"report", "scle"});
  CHECK(unknown.exit_code == 4);
  CHECK_THAT(unknown.err, Contains("did you mean \"scale\"?; a job's id goes with --job"));
  CHECK(ctl(daemon, {"report", "--all", kTinyKernel}).exit_code == 2);
}

TEST_CASE_METHOD(ReportFixture, "a report leaves out what came with cubind unless it is asked for") {
  tuned(2);
  import_shipped(daemon);
  for (const char* subject : {kTinyKernel, "--all"}) {
    const Json own = ctl_json(daemon, {"report", subject});
    CHECK(own["records"].size() == 1);
    CHECK(own["devices"].size() == 1);
    CHECK_THAT(own["remarks"].dump(),
               Contains("left out 1 record that came with cubind: --shipped includes it"));
    const Json all = ctl_json(daemon, {"report", subject, "--shipped"});
    REQUIRE(all["records"].size() == 2);
    CHECK_THAT(all["records"].dump(), Contains("\"evidence\":\"shipped\""));
  }
}

TEST_CASE_METHOD(ReportFixture, "a kernel's stability has the problems that were measured more than once") {
  tuned(2);
  tuned(3);
  const std::vector<std::string> command{"report", kTinyKernel, "--stability"};
  CHECK_THAT(ctl(daemon, command).out, Contains("No problem was measured more than once."));
  ctl_json(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2)), "--retune"});
  const Json stability = ctl_json(daemon, command);
  CHECK(stability["records"] == 2);
  REQUIRE(stability["measured_again"].size() == 1);
  const Json& again = stability["measured_again"][0];
  CHECK(again["measured"] == 2);
  CHECK(again["winner_changes"].is_number_unsigned());
  CHECK(again["first_over_today_ratio"].get<double>() > 0);
  CHECK_THAT(ctl(daemon, command).out, Contains("FIRST/TODAY") && Contains("THREADS="));
  CHECK(ctl(daemon, {"report", "--stability"}).exit_code == 2);
  CHECK_THAT(ctl(daemon, {"report", kTinyKernel, "--stability", "--shipped"}).err, Contains("excludes"));
  CHECK(ctl(daemon, {"report", "none", "--stability", "--json"}).exit_code == 4);
}

TEST_CASE_METHOD(ReportFixture, "the command of a failed trial tries it again") {
  tuned(2);
  const Json failed = ctl_json(daemon, {"report", kTinyKernel})["tunings"][0]["failed"];
  REQUIRE(failed.size() == 1);
  daemon.write_faults("[]");
  ProgramRun run;
  run.program = "/bin/sh";
  run.arguments = {"-c", failed[0]["command"]};
  run.environment = {"CUBIND_ADDRESS=" + daemon->address(), "PATH=" + bin_dir().string() + ":/usr/bin:/bin"};
  const ProgramResult result = run_program(run);
  INFO(result.out + result.err);
  CHECK(result.exit_code == 0);
  CHECK(ctl_json(daemon, {"report", kTinyKernel})["tunings"][0]["failed"].empty());
}

TEST_CASE_METHOD(ReportFixture, "a report of a kernel that was never tuned is a page") {
  const ProgramResult page = ctl(daemon, {"report", kTinyKernel});
  CHECK(page.exit_code == 0);
  CHECK_THAT(page.out, Catch::StartsWith("<!doctype html>") && Contains("\"records\":[]"));
}

TEST_CASE_METHOD(ReportFixture, "a kernel that a caller has defined is reported") {
  const auto spec = TritonSpec().parse();
  const std::filesystem::path folder = daemon->store().string() + ".kernels/" + spec->name;
  std::filesystem::create_directories(folder);
  for (const SourceFile& file : spec->bundle.files) {
    write_file_atomic(folder / file.path, file.content);
  }
  write_file_atomic(folder / (spec->name + ".json"), spec->bundle.spec_json);
  const ProgramResult page = ctl(daemon, {"report", spec->name});
  INFO(page.err);
  CHECK(page.exit_code == 0);
  CHECK_THAT(page.out, Contains("\"kernel\":\"" + spec->name + "\""));
  CHECK(ctl(daemon, {"report", spec->name + "x"}).exit_code == 4);
}

}  // namespace
}  // namespace cubind::test
