// cubindctl table check, diff and merge on what a real daemon exports, and shape lists that it tunes.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

struct TableFiles {
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}}};

  // No command of `table` finds a daemon here; the others get its address.
  ProgramResult ctl(std::vector<std::string> arguments, bool with_daemon = false) const {
    ProgramRun run;
    run.program = "cubindctl";
    run.arguments = std::move(arguments);
    run.environment = {"CUBIND_ADDRESS=" + (with_daemon ? daemon_address() : "unix:///nowhere"),
                       "CUDA_VISIBLE_DEVICES="};
    return run_program(run);
  }
  std::string daemon_address() const { return const_cast<TinyDaemon&>(daemon)->address(); }
  std::string file(const std::string& name) const { return (daemon.folder() / name).string(); }
  std::string kernels() const { return daemon.kernels().string(); }
  void write(const std::string& name, const std::string& text) const { write_file_atomic(file(name), text); }

  // Tunes and exports all that is known, as the user does.
  std::string tuned(const std::string& name, const std::string& problem) const {
    CHECK(ctl({"tune", kTinyKernel, "--problem", problem}, true).exit_code == 0);
    CHECK(ctl({"export", "--replayed", "--all-trials", "--samples", "-o", file(name)}, true).exit_code == 0);
    return file(name);
  }
};

using Catch::Matchers::Contains;

TEST_CASE_METHOD(TableFiles, "what a daemon exports passes table check against its specs") {
  const std::string table = tuned("t.json", "N=4096,K=2,T=f32");
  const ProgramResult result = ctl({"table", "check", table, "--kernels", kernels()});
  CHECK(result.exit_code == 0);
  CHECK(result.out == table + ": 1 record and 12 trials in order\n");
  const ProgramResult unknown = ctl({"table", "check", table});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.out,
             Contains(table + " /records/0/kernel and 12 other places: no spec has the name \"scale\""));
}

TEST_CASE_METHOD(TableFiles, "table check tells every finding on a line with its pointer and ends with 1") {
  Table table = read_table(read_file(tuned("t.json", "N=4096,K=2,T=f32")), "t.json");
  table.records[0].context.configuration.values[1].value = 3;
  table.trials[0].context.configuration.values[0].value = 48;
  write("bad.json", print_table(table));
  const ProgramResult result = ctl({"table", "check", file("bad.json"), "--kernels", kernels()});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Contains("bad.json /records/0/configuration/VECTOR: 3 is not listed") &&
                             Contains("/configuration/THREADS: 48 is not listed"));
  CHECK(std::ranges::count(result.out, '\n') == 2);
  const Json json =
      Json::parse(ctl({"table", "check", file("bad.json"), "--kernels", kernels(), "--json"}).out);
  CHECK(json["files"][0]["ok"] == false);
  CHECK(json["files"][0]["findings"].size() == 2);
}

TEST_CASE_METHOD(TableFiles, "a source that has changed since fails table check unless it may be outdated") {
  const std::string table = tuned("t.json", "N=4096,K=2,T=f32");
  write_tiny_kernel(daemon.kernels(), "another revision");
  const ProgramResult refused = ctl({"table", "check", table, "--kernels", kernels()});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.out, Contains("/records/0/trial and 12 other places: other_revision: "));
  const ProgramResult allowed = ctl({"table", "check", table, "--kernels", kernels(), "--allow-outdated"});
  CHECK(allowed.exit_code == 0);
  CHECK_THAT(allowed.out, Contains("/records/0/trial and 12 other places: warning: other_revision: "));
}

TEST_CASE_METHOD(TableFiles, "table diff of a table with itself prints nothing") {
  const std::string table = tuned("t.json", "N=4096,K=2,T=f32");
  const ProgramResult result = ctl({"table", "diff", table, table, "--fail-above", "0%"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  const Json json = Json::parse(ctl({"table", "diff", table, table, "--json"}).out);
  CHECK(json == Json{{"only_in_a", Json::array()}, {"only_in_b", Json::array()}, {"changed", Json::array()}});
}

TEST_CASE_METHOD(TableFiles,
                 "table diff tells records of one table and changes and ends with 1 above the limit") {
  const std::string before = tuned("a.json", "N=4096,K=2,T=f32"), both = tuned("b.json", "N=4096,K=3,T=f32");
  CHECK_THAT(ctl({"table", "diff", before, both}).out, Contains("only in B") &&
                                                           Contains("N=4096,K=3,T=f32") &&
                                                           Contains("0 only in A, 1 only in B, 0 changed"));
  Table slower = read_table(read_file(before), "a.json");
  slower.records[0].timing.set_median_us(slower.records[0].timing.median_us() * 1.03);
  slower.records[0].timing.set_high_us(slower.records[0].timing.high_us() * 1.1);
  write("slower.json", print_table(slower));
  const ProgramResult result = ctl({"table", "diff", before, file("slower.json"), "--fail-above", "2%"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Contains("+3.0 %") && Contains("1 slower by more than 2 %"));
  CHECK(ctl({"table", "diff", before, file("slower.json"), "--fail-above", "5"}).exit_code == 0);
  CHECK(ctl({"table", "diff", file("slower.json"), before, "--fail-above", "2%"}).exit_code == 0);
  CHECK(ctl({"table", "diff", before, both, "--fail-above", "2 percent"}).exit_code == 2);
}

TEST_CASE_METHOD(TableFiles, "table check --measure holds each record against today's device") {
  Table table = read_table(read_file(tuned("t.json", "N=4096,K=2,T=f32")), "t.json");
  const auto measured = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"table", "check", file("t.json"), "--kernels", kernels(), "--measure"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ctl(arguments, true);
  };
  const ProgramResult same = measured({});
  INFO(same.err);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.out, Contains(" 1.00 ") && Contains("  ok") && Contains("1 record measured"));
  const Json document = Json::parse(measured({"--json"}).out)["files"][0]["measured"]["records"][0];
  CHECK(document["ratio"].get<double>() == Approx(1).epsilon(0.05));
  CHECK(document["default_ratio"].get<double>() >= 0.99);

  table.records[0].timing.set_median_us(table.records[0].timing.median_us() / 2);
  table.records[0].timing.set_low_us(table.records[0].timing.low_us() / 2);
  write("t.json", print_table(table));
  const ProgramResult slower = measured({});
  CHECK(slower.exit_code == 1);
  CHECK_THAT(slower.out, Contains("  FAIL"));
  const ProgramResult tolerated = measured({"--fail", "3"});
  CHECK(tolerated.exit_code == 0);
  CHECK_THAT(tolerated.out, Contains("  warn"));

  TinyDaemon other({.problems = {tiny_problem(3)}});
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = {"table", "check", file("t.json"), "--kernels", kernels(), "--measure"};
  run.environment = {"CUBIND_ADDRESS=" + other->address()};
  const ProgramResult left_out = run_program(run);
  CHECK(left_out.exit_code == 1);
  CHECK_THAT(left_out.out, Contains("0 records measured, 1 left out"));
}

TEST_CASE_METHOD(TableFiles, "merged tables are imported and the order of merging leaves no trace") {
  const std::string first = tuned("a.json", "N=4096,K=2,T=f32"), second = tuned("b.json", "N=4096,K=3,T=f32");
  const ProgramResult merged = ctl({"table", "merge", first, second, "-o", file("m.json")});
  CHECK(merged.exit_code == 0);
  CHECK_THAT(merged.out, Contains("2 records and 24 trials of 2 tables"));
  CHECK(ctl({"table", "merge", second, first}).out == read_file(file("m.json")));
  CHECK(ctl({"table", "diff", second, file("m.json")}).out.empty());
  TinyDaemon other;
  CHECK(other->connect().import_table(read_file(file("m.json")), "m.json", "", kPatience).records_added() ==
        2);
}

TEST_CASE_METHOD(TableFiles, "shape lists as JSON lines and CSV are tuned") {
  write("shapes.jsonl", "{\"kernel\": \"scale\", \"N\": 4096, \"K\": 2, \"T\": \"torch.float32\"}\n");
  write("shapes.csv", "N,K,T\n4096,2,np.single\n4096,3,fp32\n");
  CHECK(ctl({"tune", "--shapes", file("shapes.jsonl")}, true).exit_code == 0);
  const ProgramResult result = ctl({"tune", "scale", "--shapes", file("shapes.csv"), "--json"}, true);
  CHECK(result.exit_code == 0);
  const Json jobs = Json::parse(result.out)["jobs"];
  REQUIRE(jobs.size() == 2);
  CHECK(daemon->connect().get_status(kPatience).records() == 2);
}

TEST_CASE("the shipped table passes table check as it is shipped") {
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = {"table", "check", (source_dir() / "variants/tables/nvidia-h200.json").string()};
  CHECK(run_program(run).exit_code == 0);
}

}  // namespace
}  // namespace cubind::test
