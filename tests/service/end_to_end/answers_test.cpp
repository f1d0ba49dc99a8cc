// Tune, ask, load: what a caller gets for a problem that was tuned.
#include <catch2/catch.hpp>

#include <set>

#include "base/digest.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a tuned problem is answered exactly with evidence replayed and the measured ELF image") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const auto ended = tune(connection, {tiny_problem(2)});
  REQUIRE(ended.size() == 1);
  REQUIRE(ended[0].job().state() == v1::Job::DONE);
  const v1::GetVariantReply reply = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  CHECK(reply.provenance().departures().empty());
  CHECK(reply.provenance().evidence() == v1::REPLAYED);
  CHECK(reply.configuration().SerializeAsString() == ended[0].winner().SerializeAsString());
  CHECK(reply.provenance().timing().timer() == "replay");
  CHECK(reply.provenance().same_bytes_measured());
  CHECK(reply.provenance().verification().verified());
  const std::string cubin = zstd_decompress(reply.artifact().zstd_cubin(), reply.artifact().cubin_bytes());
  CHECK(
      cubin.starts_with("\x7f"
                        "ELF"));
  CHECK(std::string(Digest::of(cubin).view()) == reply.artifact().digest());
  CHECK(reply.artifact().architecture() == "sm_90");
  REQUIRE(reply.plan().launches_size() == 1);
  CHECK(cubin.find(reply.plan().launches(0).entry_symbol()) != std::string::npos);
}

TEST_CASE("the winner is within the tie margin of the fastest configuration") {
  TinyDaemon daemon({.problems = {tiny_problem(2), tiny_problem(3), tiny_problem(5)}});
  const Connection connection = daemon->connect();
  for (const std::int64_t factor : {2, 3, 5}) {
    Table table = tiny_table({tiny_problem(factor)});
    const auto ended = tune(connection, {tiny_problem(factor)});
    REQUIRE(ended.size() == 1);
    const Configuration winner = configuration_from_wire(ended[0].winner(), "winner");
    const auto best = fastest_tiny_configuration(tiny_problem(factor));
    const double won = trial_of(table, tiny_problem(factor), winner).screening[0].samples_us(0);
    const double fastest = trial_of(table, tiny_problem(factor), best).screening[0].samples_us(0);
    // One sample of each: the margin and twice the noise.
    CHECK(won <= fastest * 1.025);
  }
}

TEST_CASE("the events of a job tell its stages and its outcomes") {
  TinyDaemon daemon({.pace_us = 20'000});
  const Connection connection = daemon->connect();
  std::set<std::string> stages;
  v1::TuneEvent last;
  connection.tune(
      tune_request({tiny_problem(2)}),
      [&](const v1::TuneEvent& event) {
        stages.insert(event.job().stage());
        last = event;
      },
      {}, std::nullopt);
  CHECK(stages.contains("verifying"));
  CHECK(stages.contains("screening"));
  CHECK(stages.contains("finalists"));
  CHECK(last.job().state() == v1::Job::DONE);
  CHECK(last.job().configurations_done() == kTinyConfigurations);
  REQUIRE(last.outcomes_size() == 2);
  CHECK(last.outcomes(0).outcome() == v1::CORRECT);
  CHECK(last.outcomes(1).outcome() == v1::UNVERIFIED);  // too slow to win
  CHECK(last.outcomes(0).count() + last.outcomes(1).count() == kTinyConfigurations);
}

TEST_CASE("an answer is the same after a restart") {
  TinyDaemon daemon;
  v1::GetVariantReply before, after;
  {
    const Connection connection = daemon->connect();
    tune(connection, {tiny_problem(2)});
    before = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  }
  REQUIRE(daemon->stop().has_value());
  daemon->start();
  const Connection connection = daemon->connect();
  after = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  CHECK(after.SerializeAsString() == before.SerializeAsString());
}

}  // namespace
}  // namespace cubind::test
