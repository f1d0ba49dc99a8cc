// cubindctl profile: the file from which ncu launches a variant, and the command that does it.
#include <catch2/catch.hpp>

#include "schemas/worker.pb.h"
#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

TEST_CASE("profile writes the served cubin with its launches and prints ncu's command") {
  TinyDaemon daemon;
  const TempDir folder;
  const std::string launch_file = folder.path() / "scale.launch";
  const std::vector<std::string> words = {"profile",          kTinyKernel, "--problem",
                                          "N=4096,K=2,T=f32", "-o",        launch_file};
  const ProgramResult result = ctl(daemon, words);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("(match: default)") && Contains("\nncu --set detailed") &&
                             Contains("--cache-control all") &&
                             Contains("cubind-worker launch " + launch_file + "\n"));
  v1::LaunchFile file;
  REQUIRE(file.ParseFromString(read_file(launch_file)));
  const Json answer = ctl_json(daemon, {"get", kTinyKernel, "--problem", "N=4096,K=2,T=f32"});
  CHECK(file.plan().launches(0).entry_symbol() == answer["launches"][0]["entry_symbol"].get<std::string>());
  CHECK(file.problem().buffers(0).fill().kind() == "normal");
  CHECK(file.problem().buffers(1).elements() == 4096);
  CHECK_FALSE(file.cubin().empty());
  const Json document = ctl_json(daemon, words);
  CHECK(document["launch_file"] == launch_file);
  CHECK_THAT(document["command"].get<std::string>(), Catch::StartsWith("ncu "));
}

}  // namespace
}  // namespace cubind::test
