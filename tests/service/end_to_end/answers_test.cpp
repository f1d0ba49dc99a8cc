// Tune, ask, load: what a caller gets for a problem that was tuned.
#include <catch2/catch.hpp>

#include <set>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a tuned problem is answered exactly with evidence replayed") {
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

TEST_CASE("the bytes served are an ELF image with the digest that the reply names") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const v1::GetVariantReply reply = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  const std::string cubin = zstd_decompress(reply.artifact().zstd_cubin(), reply.artifact().cubin_bytes());
  CHECK(cubin.substr(0, 4) ==
        "\x7f"
        "ELF");
  CHECK(std::string(Digest::of(cubin).view()) == reply.artifact().digest());
  CHECK(reply.artifact().architecture() == "sm_90");
  REQUIRE(reply.plan().launches_size() == 1);
  CHECK(cubin.find(reply.plan().launches(0).entry_symbol()) != std::string::npos);
}

TEST_CASE("the launch plan is evaluated for the problem that was asked") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const v1::GetVariantReply reply =
      connection.get_variant(question(connection, tiny_problem(2, 3001)), kPatience);
  const Configuration winner = configuration_from_wire(reply.configuration(), "configuration");
  const std::int64_t per_block = winner.value("THREADS").value() * winner.value("VECTOR").value();
  REQUIRE(reply.plan().launches_size() == 1);
  CHECK(reply.plan().launches(0).grid().x() == (3001 + per_block - 1) / per_block);
  CHECK(reply.plan().launches(0).parameters(0).extent_bytes() == 3001 * 4);
}

TEST_CASE("bytes that the caller holds are not sent and GetArtifact gives the same ones") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  const v1::GetVariantReply full = connection.get_variant(request, kPatience);
  request.add_have_artifacts(full.artifact().digest());
  const v1::GetVariantReply brief = connection.get_variant(request, kPatience);
  CHECK(brief.artifact().zstd_cubin().empty());
  CHECK(brief.artifact().digest() == full.artifact().digest());
  const auto digest = Digest::from_bytes(full.artifact().digest()).value();
  CHECK(connection.get_artifact(digest, kPatience) == full.artifact().zstd_cubin());
}

TEST_CASE("tuning what is fresh measures nothing") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const std::size_t measured = daemon.measured_blocks().size();
  const auto again = tune(connection, {tiny_problem(2)});
  REQUIRE(again.size() == 1);
  CHECK(again[0].already_fresh());
  CHECK(daemon.measured_blocks().size() == measured);
}

TEST_CASE("a retune measures again") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const std::size_t measured = daemon.measured_blocks().size();
  v1::TuneRequest request = tune_request({tiny_problem(2)});
  request.set_retune(true);
  v1::Job last;
  connection.tune(
      request, [&](const v1::TuneEvent& event) { last = event.job(); }, {}, std::nullopt);
  CHECK(last.state() == v1::Job::DONE);
  CHECK(daemon.measured_blocks().size() > measured);
  CHECK(last.nvrtc_calls() == 0);  // the artifacts are known
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

TEST_CASE("an unknown kernel is NOT_FOUND by its name") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.set_kernel("no_such_kernel");
  try {
    connection.get_variant(request, kPatience);
    FAIL("answered");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::NotFound);
    CHECK(std::string(error.what()).find("no_such_kernel") != std::string::npos);
  }
}

}  // namespace
}  // namespace cubind::test
