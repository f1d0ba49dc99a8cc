// Kernel specs as a user edits them next to a running daemon: begun by `kernels init`, changed, broken,
// removed.
#include <catch2/catch.hpp>
#include <random>
#include <regex>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/service/cubindctl/live.hpp"
#include "tests/support/docs.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/valid_configurations.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

constexpr const char* kMine = "mine";

Problem problem_of_mine() { return parse_problem("N=4096,T=f32"); }

/// Trials of what `kernels init` writes, on the table's device.
void add_mine(Table& table) {
  TempDir folder;
  REQUIRE(ctl("unix:///nowhere", {"kernels", "init", kMine, "--dir", folder.path()}).exit_code == 0);
  const auto spec = load_kernel_spec(folder.path() / "mine.json");
  const TableDevice& device = table.devices.at(0);
  double time_us = 5;
  for (const Configuration& configuration :
       valid_configurations(*spec, problem_of_mine(), device_constants(device.facts))) {
    TableTrial trial = table.trials.front();
    trial.context.kernel = kMine;
    trial.context.problem = problem_of_mine();
    trial.context.configuration = configuration;
    trial.context.trial = Digest::of("mine " + to_string(configuration));
    trial.screening = {test::block_of({time_us, time_us, time_us})};
    trial.finals = {test::block_of(std::vector<double>(60, time_us))};
    table.trials.push_back(trial);
    time_us += 1;
  }
}

void replace_in(const fs::path& file, const std::string& what, const std::string& with) {
  std::string text = read_file(file);
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), with);
  write_file_atomic(file, text);
}

Json kernel_of(TinyDaemon& daemon, const std::string& name) {
  const Json kernels = ctl_json(daemon, {"kernels"});
  for (const Json& kernel : kernels["kernels"]) {
    if (kernel["name"] == name) {
      return kernel;
    }
  }
  return nullptr;
}

/// An array of f32, in which no compression finds anything.
std::string random_npy(std::size_t elements) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }\n";
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  std::minstd_rand random;
  for (std::size_t i = 0; i < 4 * elements; ++i) {
    text.push_back(static_cast<char>(random() >> 8));
  }
  return text;
}

}  // namespace

TEST_CASE("what kernels init writes is taken up by a running daemon and checked and tuned at once") {
  TinyDaemon daemon({.edit_table = add_mine});
  REQUIRE(kernel_of(daemon, kMine).is_null());
  const ProgramResult begun = ctl(daemon, {"kernels", "init", kMine, "--dir", daemon.kernels()});
  REQUIRE(begun.exit_code == 0);
  CHECK(begun.out.find("Serve it with") < begun.out.find("Check it with"));
  const fs::path spec = daemon.kernels() / "mine.json";
  const ProgramResult checked = ctl(daemon, {"kernels", "check", spec, "--problem", "N=4096,T=bf16"});
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("15 of 16 configurations are valid") && Contains("compiled for sm_90") &&
                              Contains("1      15  THREADS * ITEMS <= 2048  /constraints/0"));
  const ProgramResult tuned = ctl(daemon, {"tune", kMine, "--problem", text_of(problem_of_mine())});
  CHECK(tuned.exit_code == 0);
  CHECK_THAT(tuned.out, Contains("THREADS=64,ITEMS=1") && Contains("15 configurations"));
}

TEST_CASE("a kernel with a header of six mebibytes is checked as it is tuned") {
  TinyDaemon daemon;
  std::string header;
  for (int i = 0; header.size() < std::size_t{6} << 20; ++i) {
    header += "// line " + std::to_string(i) + " of what some tool has written\n";
  }
  write_file_atomic(daemon.kernels() / "large.h", header);
  const fs::path source = daemon.kernels() / "scale.cu";
  write_file_atomic(source, "#include \"large.h\"\n" + read_file(source));
  const std::string problem = text_of(tiny_problem(2));
  const ProgramResult checked =
      ctl(daemon, {"kernels", "check", daemon.kernels() / "scale.json", "--problem", problem});
  INFO(checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("compiled for sm_90"));
  CHECK(ctl(daemon, {"tune", kTinyKernel, "--problem", problem}).exit_code == 0);
}

TEST_CASE("without a daemon kernels check starts its own unless an address is named") {
  const TempDir folder("cubind-test");
  REQUIRE(ctl("unix:///nowhere", {"kernels", "init", kMine, "--dir", folder.path()}).exit_code == 0);
  const auto check = [&](const std::string& variable) {
    ProgramRun run;
    run.program = "cubindctl";
    run.arguments = {"kernels", "check", folder.path() / "mine.json"};
    run.environment = own_environment_with({variable});
    return run_program(run);
  };
  const ProgramResult checked = check("XDG_RUNTIME_DIR=" + folder.path().string());
  INFO(checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("compiled for sm_90"));
  CHECK(check("CUBIND_ADDRESS=unix:///nowhere").exit_code == 3);
}

TEST_CASE("kernels check counts the dynamic shared memory of a launch") {
  TinyDaemon daemon;
  const fs::path spec = daemon.kernels() / "scale.json";
  Json with_shared = Json::parse(read_file(spec));
  with_shared["launches"][0]["shared_bytes"] = "THREADS * 16";
  replace_in(spec, read_file(spec), with_shared.dump());
  const std::string out = ctl(daemon, {"kernels", "check", spec, "--problem", text_of(tiny_problem(2))}).out;
  CHECK(std::regex_search(out, std::regex(R"(registers, (512|1024|2048|4096) B shared, 0 B spilled)")));
}

TEST_CASE("kernels check prints the tensor maps of the default and why none is valid") {
  TinyDaemon daemon;
  const fs::path spec = daemon.kernels() / "transpose.json";
  for (const auto& [file, language] : {std::pair("transpose.cu", "cuda"), {"transpose.json", "json"}}) {
    write_file_atomic(daemon.kernels() / file, code_block("kernels.md", "## Tensor maps", language));
  }
  const auto checked = [&](const char* problem) {
    return ctl(daemon, {"kernels", "check", spec, "--problem", problem}).out;
  };
  CHECK_THAT(checked("N=1000,D=64"),
             Contains("tensor map x_map of x: f32 [64, 1000], strides [256], box [32, 64]\n") &&
                 Contains("compiled for sm_90"));
  CHECK_THAT(checked("N=1000,D=63"),
             Contains("/arguments/x_map/strides/0: 252 bytes are not a multiple of 16"));
}

TEST_CASE("what a kernel check assumes is a note and no warning") {
  TinyDaemon daemon;
  const TempDir drafts("cubind-test");
  std::filesystem::copy(daemon.kernels(), drafts.path() / "k");
  const std::string out = ctl(daemon, {"kernels", "check", drafts.path() / "k" / "scale.json"}).out;
  CHECK_THAT(out, Contains("  note: no folder of the daemon's kernels holds it: `cubind --kernels ") &&
                      Contains("  note: no device was named: counted for ") && !Contains("warning: no "));
}

TEST_CASE("a fault of a problem is reported at the option that gives it") {
  TinyDaemon daemon;
  const std::string spec = daemon.kernels() / "scale.json";
  for (const auto& words : {std::vector<std::string>{"kernels", "check", spec}, {"get", kTinyKernel}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--problem", "M=1"});
    const ProgramResult result = ctl(daemon, all);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Catch::StartsWith("cubindctl: --problem M=1: "));
  }
}

TEST_CASE("kernels check fails for an architecture that no agent compiles for and says which there are") {
  TinyDaemon daemon;
  const ProgramResult result =
      ctl(daemon, {"kernels", "check", daemon.kernels() / "scale.json", "--arch", "sm_35"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::StartsWith("cubindctl: --arch: \"sm_35\" cannot be compiled for: nvrtc ") &&
                             Contains(" compiles for ") && Contains("sm_90"));
}

TEST_CASE("kernels init and kernels check warn of a name that the daemon serves from another file") {
  TinyDaemon daemon;
  TempDir folder;
  const std::string clash = "\"" + std::string(kTinyKernel) + "\" is already served from " +
                            (daemon.kernels() / "scale.json").string();
  const ProgramResult begun = ctl(daemon, {"kernels", "init", kTinyKernel, "--dir", folder.path()});
  CHECK(begun.exit_code == 0);
  CHECK_THAT(begun.out, Contains("warning: " + clash));
  const fs::path file = folder.path() / (std::string(kTinyKernel) + ".json");
  CHECK_THAT(ctl(daemon, {"kernels", "check", file}).out, Contains("warning: /name: " + clash));
  CHECK_THAT(ctl(daemon, {"kernels", "check", daemon.kernels() / "scale.json"}).out,
             !Contains("already served"));
  // A spec that has become broken leaves its last good version in force.
  replace_in(daemon.kernels() / "scale.json", "\"tunables\"", "\"tunable\"");
  CHECK_THAT(ctl(daemon, {"kernels", "check", file}).out, Contains("warning: /name: " + clash));
}

TEST_CASE("kernels init writes nothing where the address is none") {
  TempDir folder;
  const ProgramResult result = ctl("nonsense", {"kernels", "init", kMine, "--dir", folder.path() / "new"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("nonsense"));
  CHECK_FALSE(fs::exists(folder.path() / "new"));
}

TEST_CASE("kernels check of a CUDA source asks for the spec") {
  TinyDaemon daemon;
  const ProgramResult result = ctl(daemon, {"kernels", "check", daemon.kernels() / "scale.cu"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("scale.cu: is a CUDA source: name the kernel spec"));
}

TEST_CASE("kernels init overwrites nothing and leaves nothing half written") {
  TempDir folder;
  write_file_atomic(folder.path() / "mine_reference.cu", "precious");
  const ProgramResult result = ctl("unix:///nowhere", {"kernels", "init", kMine, "--dir", folder.path()});
  CHECK(result.exit_code == 7);
  CHECK_THAT(result.err, Contains("mine_reference.cu: exists already and is not overwritten"));
  CHECK(read_file(folder.path() / "mine_reference.cu") == "precious");
  CHECK_FALSE(fs::exists(folder.path() / "mine.cu"));
  CHECK_FALSE(fs::exists(folder.path() / "mine.json"));
  CHECK_FALSE(fs::exists(folder.path() / "kernel_spec.schema"));
}

TEST_CASE("an editor finds the schema that kernels init writes once next to its specs") {
  TempDir folder;
  const auto init = [&](const char* name) {
    return ctl("unix:///nowhere", {"kernels", "init", name, "--dir", folder.path()});
  };
  REQUIRE(init(kMine).exit_code == 0);
  const Json spec = Json::parse(read_file(folder.path() / "mine.json"));
  const fs::path schema = folder.path() / spec["$schema"].get<std::string>();
  const std::string text = read_file(schema);
  CHECK(Json::parse(text)["properties"].contains("tunables"));
  CHECK(ctl("unix:///nowhere", {"kernels", "schema"}).out == text);
  write_file_atomic(schema, "newer");
  REQUIRE(init("other").exit_code == 0);
  CHECK(read_file(schema) == "newer");
}

TEST_CASE("kernels init refuses what cannot be a kernel's name") {
  for (const char* name : {"2fast", "a-b", "../up", "", "a b"}) {
    const ProgramResult result = ctl("unix:///nowhere", {"kernels", "init", name});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("not a kernel's name"));
  }
}

TEST_CASE(
    "a spec that becomes broken keeps its last good version and is reported with file and pointer and "
    "cause") {
  TinyDaemon daemon;
  const fs::path spec = daemon.kernels() / "scale.json";
  replace_in(spec, "\"tunables\"", "\"tunable\"");
  const Json kernel = kernel_of(daemon, kTinyKernel);
  CHECK(kernel["keeps_last_good"] == true);
  CHECK(kernel["tunables"].size() == 2);
  const std::string error = spec.string() + " /tunable: unexpected key, did you mean \"tunables\"?";
  CHECK(kernel["error"] == error);
  CHECK_THAT(ctl(daemon, {"kernels"}).out, Contains("the last good version stays in force: " + error));
  CHECK_THAT(ctl(daemon, {"status"}).out, Contains("BAD SPEC    " + error));
  CHECK(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))}).exit_code == 0);
  replace_in(spec, "\"tunable\"", "\"tunables\"");
  CHECK_FALSE(kernel_of(daemon, kTinyKernel).contains("error"));
}

TEST_CASE("a running job keeps the spec that it began with") {
  TinyDaemon daemon({.hold = true});
  const std::vector<std::string> tune = {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))};
  std::vector<std::string> detached = tune;
  detached.emplace_back("--detach");
  const std::string id = ctl_json(daemon, detached)["jobs"][0]["id"];
  const auto verifies = [&] { return ctl_json(daemon, {"jobs"})["jobs"][0]["configurations"] == 12; };
  REQUIRE(eventually(verifies));
  replace_in(daemon.kernels() / "scale.json", "\"VECTOR\": [1, 2, 4]", "\"VECTOR\": [1, 2]");
  write_file_atomic(daemon.kernels() / "scale.cu",
                    "#error \"no longer\"\n" + read_file(daemon.kernels() / "scale.cu"));
  REQUIRE(ctl(daemon, {"kernels"}).exit_code == 0);  // the daemon has seen the changes
  daemon.let_go();
  const Json job = ctl_json(daemon, {"jobs", "--watch", id})["jobs"][0];
  CHECK(job["state"] == "done");
  CHECK(job["configurations"] == 12);
}

TEST_CASE("a kernel with more data of its own than a message holds is checked") {
  TinyDaemon daemon;
  REQUIRE(ctl(daemon, {"kernels", "init", kMine, "--dir", daemon.folder()}).exit_code == 0);
  const fs::path spec = daemon.folder() / "mine.json";
  OrderedJson json = OrderedJson::parse(read_file(spec));
  json["problem"].erase("bucket");
  json["arguments"]["x"]["fill"] = {{"npy", "x.npy"}};
  write_file_atomic(spec, json.dump());
  write_file_atomic(daemon.folder() / "x.npy", random_npy(1'500'000));
  const ProgramResult checked = ctl(daemon, {"kernels", "check", spec, "--problem", "N=1500000,T=f32"});
  INFO(checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("compiled for sm_90"));
}

}  // namespace cubind::test
