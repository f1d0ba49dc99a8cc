#include <catch2/catch.hpp>

#include <future>

#include "base/zstd.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

v1::TuneRequest detached(std::int64_t n, const v1::DeviceFacts& facts = h200_facts()) {
  v1::TuneRequest request = tune_vector_add({n}, facts);
  request.set_detach(true);
  return request;
}

struct ShortLeases : DaemonFixture {
  ShortLeases() {
    config().lease = std::chrono::milliseconds(300);
    restart();
  }
};

TEST_CASE("a lease expires by the daemon's clock and its job is granted again with a higher fence") {
  ShortLeases daemon;
  FakeAgent slow(daemon.address(), hello_with(h200_facts(), "slow"));
  daemon.tune(detached(4096));
  const v1::LeaseGrant first = slow.wait_for_lease();
  CHECK(slow.wait_for_end_of_lease().lease_id() == first.lease_id());
  const v1::LeaseGrant second = slow.wait_for_lease();
  CHECK(second.job_id() == first.job_id());
  CHECK(second.fence() > first.fence());
}

TEST_CASE("an agent that says nothing is dropped and its job goes to another") {
  DaemonFixture daemon;
  daemon.config().heartbeat = std::chrono::milliseconds(100);
  daemon.restart();
  FakeAgent stuck(daemon.address(), hello_with(h200_facts(), "stuck"));
  daemon.tune(detached(4096));
  const v1::LeaseGrant first = stuck.wait_for_lease();
  FakeAgent other(daemon.address(), hello_with(h200_facts(), "other"));
  stuck.fall_silent();
  CHECK(stuck.wait_for_end() == "the agent said nothing for 500 ms");
  CHECK(other.wait_for_lease().job_id() == first.job_id());
}

TEST_CASE("what a lost agent has stored comes with the next lease and nothing is measured twice") {
  DaemonFixture daemon;
  daemon.tune(detached(4096));
  {
    FakeAgent agent(daemon.address(), hello_with(h200_facts()));
    const v1::LeaseGrant lease = agent.wait_for_lease();
    CHECK(lease.trials().empty());
    REQUIRE(agent.send_batch(lease, batch_of(fake_trials(lease, 3), 2)));
  }
  DaemonFixture::eventually([&] { return daemon.status().agents() == 0; });
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.trials_size() == 3);
  CHECK(lease.blocks_size() == 6);
  CHECK(lease.artifacts_size() == 3);
  CHECK(lease.artifacts(0).info().zstd_cubin().empty());
}

TEST_CASE("a cancelled job ends its lease at the agent and its waiters") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  auto tune = std::async(std::launch::async, [&] { return daemon.tune(tune_vector_add({4096})); });
  const v1::LeaseGrant lease = agent.wait_for_lease();
  v1::CancelJobRequest request;
  request.set_id(lease.job_id());
  v1::CancelJobReply reply;
  grpc::ClientContext context;
  REQUIRE(daemon.stub().CancelJob(&context, request, &reply).ok());
  CHECK(reply.job().state() == v1::Job::CANCELLED);
  CHECK(agent.wait_for_end_of_lease().lease_id() == lease.lease_id());
  CHECK(tune.get().back().job().state() == v1::Job::CANCELLED);
  grpc::ClientContext again;
  CHECK(daemon.stub().CancelJob(&again, request, &reply).error_code() ==
        grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_CASE("shutting down asks agents for their leases back and keeps the job") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached(4096));
  const v1::LeaseGrant lease = agent.wait_for_lease();
  auto stopped = std::async(std::launch::async, [&] { daemon.stop(); });
  agent.wait_for_drain();
  REQUIRE(agent.send_batch(lease, batch_of(fake_trials(lease, 1))));
  v1::JobResult back;
  back.set_status(v1::JobResult::INTERRUPTED);
  REQUIRE(agent.send_result(lease, back));
  stopped.get();
  daemon.restart();
  CHECK(daemon.jobs().at(0).id() == lease.job_id());
}

TEST_CASE("a retune measures again what is fresh and keeps the artifacts") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached(4096));
  REQUIRE(agent.tune(agent.wait_for_lease()));
  v1::TuneRequest again = detached(4096);
  again.set_retune(true);
  daemon.tune(again);
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.trials().empty());
  CHECK(lease.blocks().empty());
  CHECK(lease.artifacts_size() == 3);
  CHECK_FALSE(lease.incumbent_trial().empty());
}

TEST_CASE("a lease carries the winners of neighbouring problems nearest first") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  for (const std::int64_t n : {1024, 16384}) {
    daemon.tune(detached(n));
    REQUIRE(agent.tune(agent.wait_for_lease()));
  }
  daemon.tune(detached(8192));
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.hints_size() >= 1);
}

TEST_CASE("a cubin above 3 MiB is put and got in chunks and its reply holds the digest alone") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached(4096));
  const v1::LeaseGrant lease = agent.wait_for_lease();
  auto trials = fake_trials(lease, 1);
  const std::string cubin = fake_cubin("large", 5 << 20);
  set_cubin(trials[0].artifact, cubin, false);
  CHECK_FALSE(zstd_compress(cubin).size() < (3u << 20));
  REQUIRE(agent.put_artifact(trials[0].artifact.info(), zstd_compress(cubin)).empty());
  REQUIRE(agent.send_batch(lease, batch_of(trials)));
  REQUIRE(agent.send_result(lease, result_of(lease, trials[0])));

  const Got got = daemon.get(vector_add(4096));
  REQUIRE(got.status.ok());
  CHECK(got.reply.artifact().zstd_cubin().empty());
  v1::GetArtifactRequest request;
  request.set_digest(got.reply.artifact().digest());
  grpc::ClientContext context;
  const auto reader = daemon.stub().GetArtifact(&context, request);
  std::string bytes;
  for (v1::ArtifactChunk chunk; reader->Read(&chunk);) {
    CHECK(chunk.data().size() <= (1u << 20));
    bytes += chunk.data();
  }
  REQUIRE(reader->Finish().ok());
  CHECK((zstd_decompress(bytes, 8 << 20) == cubin));
}

TEST_CASE("an upload whose bytes do not have the digest is refused") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::ArtifactUpload upload;
  set_cubin(upload, fake_cubin("promised", 1000), false);
  CHECK(agent.put_artifact(upload.info(), zstd_compress(fake_cubin("another", 1000))).find("digest") !=
        std::string::npos);
}

}  // namespace
}  // namespace cubind::test
