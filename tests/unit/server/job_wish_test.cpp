#include "server/service/job_wish.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/lookup_fixture.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

struct WishFixture : LookupFixture {
  /// Of a caller with the agent's driver and toolchain.
  Question asked(std::int64_t n) const {
    Question question = ask(n);
    question.driver = DriverVersion{13000, "580.159.04"};
    question.toolchain = CurrentToolchain{"nvrtc 13.0", {}};
    return question;
  }
  std::optional<JobWish> wish(const Question& question, const AgentProfiles& agents = {agent_with()}) const {
    const auto candidates = rank(question);
    return job_wish(question, candidates.empty() ? nullptr : &candidates.front(), agents);
  }
};

TEST_CASE("where nothing of the bucket was measured its representative is wished for") {
  WishFixture f;
  const auto wish = f.wish(f.asked(3000));
  REQUIRE(wish);
  CHECK(wish->order.question.problem == problem_of(4096));
  CHECK(wish->order.for_bucket);
  CHECK_FALSE(wish->retune);
  f.add({f.record(8192)});
  REQUIRE(f.best(f.asked(3000)).match == Match{Departure::NearestProblem});
  CHECK(f.wish(f.asked(3000))->order.for_bucket);
  CHECK(job_wish(f.asked(3000), nullptr, {})->order.question.problem == problem_of(4096));
}

TEST_CASE("what the bucket answers is wished for exactly") {
  WishFixture f;
  f.add({f.record(4096)});
  const auto wish = f.wish(f.asked(3000));
  REQUIRE(wish);
  CHECK(wish->order.question.problem == problem_of(3000));
  CHECK_FALSE(wish->order.for_bucket);
  CHECK_FALSE(wish->retune);
}

TEST_CASE("a stale record is measured again where agents have what the caller has") {
  WishFixture f;
  RecordRow old = f.record(4096);
  old.timing.set_power_limit_mw(600'000);
  f.add({old});
  Question question = f.asked(3000);
  question.gpu.set_power_limit_mw(700'000);
  const auto with_limit = [](std::uint32_t milliwatts) {
    AgentProfile agent = agent_with();
    agent.devices[0].device.facts.set_power_limit_mw(milliwatts);
    return AgentProfiles{agent};
  };
  const auto wish = f.wish(question, with_limit(700'000));
  REQUIRE(wish);
  CHECK(wish->order.question.problem == problem_of(4096));
  CHECK(wish->retune);
  CHECK_FALSE(wish->order.for_bucket);
  CHECK_FALSE(f.wish(question, with_limit(600'000)));
  CHECK(f.wish(question, {}));  // an agent may come
}

TEST_CASE("a record of another revision of the source is measured again whatever driver agents have") {
  WishFixture f;
  RecordRow edited = f.record(4096);
  edited.trial = Digest::of("of an earlier source");
  f.add({edited});
  const auto wish = f.wish(f.asked(3000));
  REQUIRE(wish);
  CHECK(wish->order.question.problem == problem_of(4096));
  CHECK_FALSE(wish->retune);
  AgentProfile behind = agent_with();
  behind.devices[0].driver.version = "570.1";
  CHECK(f.wish(f.asked(3000), {behind}));
}

TEST_CASE("invariant numerics wish for nothing that agents would measure with another toolchain") {
  WishFixture f;
  Question question = f.asked(4096);
  question.key.numerics.kind = Numerics::Kind::Invariant;
  CHECK(f.wish(question));
  AgentProfile newer = agent_with();
  newer.toolchains[0].name = "nvrtc 13.1";
  CHECK_FALSE(f.wish(question, {newer}));
}

}  // namespace
}  // namespace cubind::test
