// A training job and its ranks.
#include <catch2/catch.hpp>

#include <future>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

v1::GetVariantRequest of_job(std::int64_t n, v1::OnMiss on_miss = v1::SERVE) {
  v1::GetVariantRequest request = vector_add(n);
  request.set_job("train-1");
  request.set_on_miss(on_miss);
  return request;
}

std::int64_t measured(const Got& got) {
  REQUIRE(got.status.ok());
  return got.reply.provenance().measured_problem().dims(0).value();
}

TEST_CASE("all ranks of a job get the same answers whatever is measured meanwhile") {
  TunedDaemon daemon;
  const std::string first = daemon.get(of_job(3000)).reply.SerializeAsString();
  daemon.tune(tune_vector_add({3000}));
  CHECK(daemon.get(of_job(3000)).reply.SerializeAsString() == first);
  CHECK(measured(daemon.get(vector_add(3000))) == 3000);
  daemon.restart();
  CHECK(daemon.get(of_job(3000)).reply.SerializeAsString() == first);
}

TEST_CASE("a rank that waits for a job gets its outcome and so do those who wait later") {
  TunedDaemon daemon;
  daemon.get(of_job(4096));
  CHECK(measured(daemon.get(of_job(64, v1::WAIT))) == 64);
  CHECK(measured(daemon.get(of_job(64, v1::WAIT))) == 64);
  CHECK(daemon.agent.tuned() == 2);
}

TEST_CASE("what was measured after a job's pin starts no job again and does not answer who does not wait") {
  TunedDaemon daemon;
  daemon.get(of_job(4096));
  daemon.tune(tune_vector_add({64}));
  const Got served = daemon.get(of_job(64));
  REQUIRE(served.status.ok());
  CHECK(served.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK(served.reply.job_id().empty());
  CHECK(daemon.get(of_job(64, v1::FAIL)).status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(daemon.status().misses_wanted() == 0);
}

/// A question that is locked to the generation of an earlier answer.
v1::GetVariantRequest locked_to(const Got& earlier, std::int64_t n) {
  v1::GetVariantRequest request = vector_add(n);
  *request.mutable_locked() = earlier.reply.provenance().generation();
  return request;
}

TEST_CASE("a locked question gets the bytes and launches of its generation whatever is measured meanwhile") {
  TunedDaemon daemon;
  const Got first = daemon.get(vector_add(3000));
  daemon.tune(tune_vector_add({3000}));
  CHECK(measured(daemon.get(vector_add(3000))) == 3000);
  const Got locked = daemon.get(locked_to(first, 3000));
  CHECK(measured(locked) == 4096);
  CHECK(locked.reply.artifact().SerializeAsString() == first.reply.artifact().SerializeAsString());
  CHECK(locked.reply.plan().SerializeAsString() == first.reply.plan().SerializeAsString());
  daemon.restart();
  CHECK(daemon.get(locked_to(first, 3000)).reply.SerializeAsString() == locked.reply.SerializeAsString());
}

TEST_CASE("a locked question without a record in its generation is an error and starts no job") {
  TunedDaemon daemon;
  const Got first = daemon.get(vector_add(4096));
  const Got got = daemon.get(locked_to(first, 64));
  CHECK(got.status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK_THAT(got.status.error_message(), Contains("has no record for N=64"));
  CHECK(daemon.agent.tuned() == 1);
  CHECK(daemon.status().misses_wanted() == 0);
}

TEST_CASE("a locked question does not wait for a measurement") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = locked_to(daemon.get(vector_add(4096)), 64);
  request.set_on_miss(v1::WAIT);
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(daemon.agent.tuned() == 1);
}

}  // namespace
}  // namespace cubind::test
