#include <catch2/catch.hpp>

#include "base/zstd.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE("tune leases the job stores the batch and serves the winner with all its evidence") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  const auto events = daemon.tune(tune_vector_add({4096}));
  REQUIRE(events.back().job().state() == v1::Job::DONE);
  CHECK(events.back().provenance().evidence() == v1::MEASURED);

  const Got got = daemon.get(vector_add(4096));
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures().empty());
  CHECK(got.reply.provenance().verification().verified());
  CHECK(got.reply.provenance().same_bytes_measured());
  CHECK(got.reply.provenance().generation().number() == 1);
  CHECK(got.reply.configuration().SerializeAsString() == events.back().winner().SerializeAsString());
  const std::string cubin = zstd_decompress(got.reply.artifact().zstd_cubin(), 1 << 20);
  CHECK(Digest::of(cubin).view() == got.reply.artifact().digest());
  REQUIRE(got.reply.plan().launches_size() == 1);
  CHECK_FALSE(got.reply.plan().launches(0).entry_symbol().empty());
}

TEST_CASE("tune measures exactly the given problems and a fresh one is not measured again") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({5000}));
  const auto events = daemon.tune(tune_vector_add({5000}));
  REQUIRE(events.size() == 1);
  CHECK(events[0].already_fresh());
  CHECK(events[0].provenance().measured_problem().dims(0).value() == 5000);
  CHECK(daemon.jobs(true).size() == 1);
}

}  // namespace
}  // namespace cubind::test
