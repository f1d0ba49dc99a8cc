// Whether a list of problems is answered by measurements.
#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

struct CoverFixture {
  std::vector<std::string> cover(const std::vector<std::string>& further) {
    std::vector<std::string> arguments{"cover", kTinyKernel, "--device", device};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return arguments;
  }
  static std::string problem(std::uint64_t k, std::uint64_t n) { return text_of(tiny_problem(k, n)); }

  TinyDaemon daemon{{.problems = {tiny_problem(2, 4096), tiny_problem(3)}}};
  const std::string device = ctl_json(daemon, {"devices"})["devices"][0]["label"];
};

}  // namespace

TEST_CASE_METHOD(CoverFixture, "a problem is covered once it or its bucket is measured") {
  const auto before = ctl(daemon, cover({"--problem", problem(2, 4096)}));
  CHECK(before.exit_code == 1);
  CHECK_THAT(before.out, Contains("default") && Contains("0 of 1 problems are covered") &&
                             Contains("nothing of its bucket was measured on") &&
                             Contains("`cubindctl tune` with the same list measures the others"));
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", problem(2, 4096)}).exit_code == 0);

  const auto after = ctl(daemon, cover({"--problem", problem(2, 4096), "--problem", problem(2, 3000)}));
  CHECK(after.exit_code == 0);
  CHECK_THAT(after.out, Contains("2 of 2 problems are covered: 1 bucket, 1 exact"));
}

TEST_CASE_METHOD(CoverFixture, "cover counts only the departures that it may accept") {
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", problem(2, 4096)}).exit_code == 0);
  CHECK(ctl(daemon, cover({"--problem", problem(2, 3000), "--accept", "exact"})).exit_code == 1);
  CHECK(ctl(daemon, cover({"--problem", problem(2, 3000), "--accept", "bucket"})).exit_code == 0);
  // Another bucket: measured on its nearest problem.
  CHECK(ctl(daemon, cover({"--problem", problem(2, 9000)})).exit_code == 1);
  CHECK(ctl(daemon, cover({"--problem", problem(2, 9000), "--accept", "nearest_problem"})).exit_code == 0);
  const auto wrong = ctl(daemon, cover({"--problem", problem(2, 3000), "--accept", "nearest"}));
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("--accept: \"nearest\" is neither exact nor departures"));
}

TEST_CASE_METHOD(CoverFixture, "a default configuration is never covered") {
  CHECK(ctl(daemon, cover({"--problem", problem(2, 4096), "--accept", "bucket+default"})).exit_code == 1);
}

TEST_CASE_METHOD(CoverFixture, "a shipped record covers a problem only if it is asked to") {
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", problem(2, 4096)}).exit_code == 0);
  import_shipped(daemon);
  std::vector<std::string> arguments{"cover",       kTinyKernel, "--device",
                                     "nvidia-h200", "--problem", problem(2, 4096)};
  const auto without = ctl(daemon, arguments);
  CHECK(without.exit_code == 1);
  CHECK_THAT(without.out, Contains("0 of 1 problems are covered") && Contains("exact") &&
                              Contains("shipped") && Contains("--shipped accepts it"));
  arguments.emplace_back("--shipped");
  CHECK(ctl(daemon, arguments).exit_code == 0);
}

TEST_CASE_METHOD(CoverFixture, "cover reads shape lists and names the place of a wrong problem") {
  const TempDir folder;
  const std::string file = (folder.path() / "shapes.jsonl").string();
  write_file_atomic(file, "{\"kernel\": \"" + std::string(kTinyKernel) +
                              "\", \"N\": 4096, \"K\": 2, \"T\": \"f32\"}\n" + "{\"kernel\": \"" +
                              kTinyKernel + "\", \"N\": 4096, \"K\": 3, \"T\": \"f32\"}\n");
  REQUIRE(ctl(daemon, {"tune", "--shapes", file}).exit_code == 0);
  const Json document = ctl_json(daemon, {"cover", "--shapes", file, "--device", device});
  CHECK(document["covered"] == 2);
  CHECK(document["problems"][1]["problem"]["K"] == 3);
  CHECK(document["problems"][1]["match"] == "exact");
  CHECK(document["problems"][1]["evidence"] == "replayed");

  write_file_atomic(
      file, "{\"kernel\": \"" + std::string(kTinyKernel) + "\", \"N\": -1, \"K\": 2, \"T\": \"f32\"}\n");
  const auto wrong = ctl(daemon, {"cover", "--shapes", file, "--device", device});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("shapes.jsonl line 1"));
  CHECK(ctl(daemon, {"cover", kTinyKernel, "--device", device}).exit_code == 2);
}

}  // namespace cubind::test
