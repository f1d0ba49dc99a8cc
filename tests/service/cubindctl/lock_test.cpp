// Answers that are locked to a generation, by cubindctl against a daemon that tunes again.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

struct LockFixture {
  LockFixture() { tune({}); }
  void tune(std::vector<std::string> more) {
    more.insert(more.begin(), {"tune", kTinyKernel, "--problem", problem});
    ctl_json(daemon, std::move(more));
  }
  std::vector<std::string> get(std::vector<std::string> more) const {
    more.insert(more.begin(), {"get", kTinyKernel, "--problem", problem, "--on-miss", "fail"});
    return more;
  }
  // The answer's document, with the bytes that were written.
  std::pair<Json, std::string> answer(std::vector<std::string> more = {}) {
    const std::string file = folder.path() / "cubin";
    more.insert(more.end(), {"-o", file});
    Json document = ctl_json(daemon, get(std::move(more)));
    return {std::move(document), read_file(file)};
  }
  // The former winner fails from now on, and another one wins.
  void flip_the_winner(const Json& winner) {
    daemon.write_faults(R"([{"at": "measure", "fault": "illegal_address", "configuration": )" +
                        winner.dump() + "}]");
    tune({"--retune"});
  }

  TinyDaemon daemon;
  TempDir folder;
  const std::string problem = text_of(tiny_problem(2));
};

std::string generation_of(const Json& answer) {
  const Json& generation = answer["provenance"]["generation"];
  return generation["number"].dump() + "@" + generation["store_id"].get<std::string>();
}

TEST_CASE_METHOD(LockFixture,
                 "a locked client gets the old cubin and launches after another winner was tuned") {
  const auto [first, bytes] = answer();
  flip_the_winner(first["configuration"]);
  const auto [now, other_bytes] = answer();
  REQUIRE(now["configuration"] != first["configuration"]);
  REQUIRE(other_bytes != bytes);
  const auto [locked, same_bytes] = answer({"--generation", generation_of(first), "--job", "rollout"});
  CHECK(same_bytes == bytes);
  CHECK(locked["configuration"] == first["configuration"]);
  CHECK(locked["launches"] == first["launches"]);
  CHECK(locked["match"] == "exact");
  daemon->stop();
  daemon->start();
  CHECK(answer({"--generation", generation_of(first), "--job", "rollout"}).second == bytes);
}

TEST_CASE_METHOD(LockFixture, "what a locked client cannot get unchanged is refused with the reason") {
  const std::string generation = generation_of(answer().first);
  CHECK_THAT(ctl(daemon, get({})).out, Contains("generation " + generation));
  write_tiny_kernel(daemon.kernels(), "edited");
  ProgramResult edited;
  REQUIRE(eventually([&] {
    edited = ctl(daemon, get({"--generation", generation}));
    return edited.exit_code == 7;
  }));
  CHECK_THAT(edited.err, Contains("the kernel's source or its launches have changed since"));
  const ProgramResult malformed = ctl(daemon, get({"--generation", "12"}));
  CHECK(malformed.exit_code == 2);
  CHECK_THAT(malformed.err, Contains("\"12\" is not a generation as an answer names it"));
}

}  // namespace
}  // namespace cubind::test
