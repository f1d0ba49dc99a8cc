#include <catch2/catch.hpp>

#include <future>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

v1::GetVariantRequest waiting(std::int64_t n) {
  v1::GetVariantRequest request = vector_add(n);
  request.set_on_miss(v1::WAIT);
  return request;
}

/// An agent that measures as scripted, and one that compiles by itself.
struct MeasuredByHand : DaemonFixture {
  MeasuredByHand() : agent(address(), measures_only()), compiler(address(), compiling_hello()) {}
  static v1::Hello measures_only() {
    v1::Hello hello = hello_with(h200_facts());
    hello.mutable_toolchains(0)->clear_architectures();
    return hello;
  }
  FakeAgent agent;
  AutoAgent compiler;
};

TEST_CASE_METHOD(MeasuredByHand, "an agent learns whether a caller waits for its job, at once or later") {
  const Got miss = get(vector_add(4096));
  REQUIRE(miss.status.ok());
  const v1::LeaseGrant unawaited = agent.wait_for_lease();
  CHECK(unawaited.background());
  auto call = std::async(std::launch::async, [&] { return get(waiting(4096)); });
  CHECK(agent.wait_for_awaited().lease_id() == unawaited.lease_id());
  REQUIRE(agent.tune(unawaited));
  REQUIRE(call.get().status.ok());
  call = std::async(std::launch::async, [&] { return get(waiting(64)); });
  const v1::LeaseGrant awaited = agent.wait_for_lease();
  CHECK_FALSE(awaited.background());
  REQUIRE(agent.tune(awaited));
  REQUIRE(call.get().status.ok());
}

TEST_CASE("a job that no agent can take is no_device and ends the wait with what serve would give") {
  DaemonFixture daemon;
  v1::Hello hello = compiling_hello();
  hello.set_no_device_because("a test has none");
  AutoAgent compiler(daemon.address(), hello);
  const Got got = daemon.get(waiting(4096));
  REQUIRE(got.status.ok());
  CHECK(got.reply.job_state() == "no_device");
  CHECK_THAT(got.reply.why(), StartsWith("no agent offers a GPU: a test has none; the job begins"));
  REQUIRE(got.reply.provenance().departures_size() == 1);
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK(got.reply.provenance().evidence() == v1::NONE);
}

TEST_CASE("a job that is no_device is taken up when an agent offers its class") {
  DaemonFixture daemon;
  daemon.get(waiting(4096), std::chrono::seconds(5));
  CHECK(daemon.jobs().at(0).state() == v1::Job::NO_DEVICE);
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  CHECK(agent.wait_for_lease().problem().dims(0).value() == 4096);
}

TEST_CASE("a job that waits for an idle GPU ends the wait with its state and the reason") {
  MeasuredByHand daemon;
  auto call = std::async(std::launch::async, [&] { return daemon.get(waiting(4096)); });
  daemon.agent.send_progress(daemon.agent.wait_for_lease(), "screening", v1::Job::WAITING_FOR_IDLE_GPU);
  const Got got = call.get();
  REQUIRE(got.status.ok());
  CHECK_THAT(got.reply.why(), Contains("other processes use the GPU"));
  CHECK(got.reply.job_state() == "waiting_for_idle_gpu");
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
}

TEST_CASE("who waits for a job behind one that waits for an idle GPU waits no longer either") {
  MeasuredByHand daemon;
  daemon.get(vector_add(64));
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  auto call = std::async(std::launch::async, [&] { return daemon.get(waiting(4096)); });
  DaemonFixture::eventually([&] { return daemon.jobs().size() == 2 && daemon.jobs()[1].waiters() == 1; });
  daemon.agent.send_progress(lease, "screening", v1::Job::WAITING_FOR_IDLE_GPU);
  const Got got = call.get();
  REQUIRE(got.status.ok());
  CHECK(got.reply.job_state() == "waiting_for_idle_gpu");
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK(daemon.get(waiting(16384)).reply.job_state() == "waiting_for_idle_gpu");
}

TEST_CASE("all who wait for a job that fails get what serve would give with its state and error") {
  MeasuredByHand daemon;
  std::vector<std::future<Got>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return daemon.get(waiting(4096)); }));
  }
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  DaemonFixture::eventually([&] { return daemon.jobs().at(0).waiters() == 3; });
  REQUIRE(daemon.agent.fail(lease, "no configuration survived"));
  for (auto& call : calls) {
    const Got got = call.get();
    REQUIRE(got.status.ok());
    CHECK(got.reply.job_id() == lease.job_id());
    CHECK(got.reply.job_state() == "failed");
    CHECK(got.reply.why() == "the job failed: no configuration survived");
    CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  }
}

TEST_CASE("who accepts measured answers alone learns why there is none") {
  MeasuredByHand daemon;
  v1::GetVariantRequest request = waiting(4096);
  request.set_restrict_accept(true);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  REQUIRE(daemon.agent.fail(lease, "no configuration survived"));
  const grpc::Status status = call.get().status;
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK_THAT(status.error_message(),
             Contains("the match \"default\": the job failed: no configuration survived"));
}

TEST_CASE("serve answers a miss with the default at once and starts a job behind the answer") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  auto call = std::async(std::launch::async, [&] { return daemon.get(vector_add(4096)); });
  std::vector<v1::LeaseGrant> leases{agent.wait_for_lease(), agent.wait_for_lease()};
  for (const v1::LeaseGrant& lease : leases) {
    if (lease.kind() == v1::Job::COMPILE_WINNER) {
      agent.compile(lease);
    }
  }
  const Got got = call.get();
  REQUIRE(got.status.ok());
  CHECK(got.reply.job_state() == "running");
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
}

TEST_CASE("a miss in a bucket without a record starts a job for the bucket's representative") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = vector_add(3000);
  request.set_compile_wait_ms(0);
  daemon.get(request);
  v1::LeaseGrant lease = agent.wait_for_lease();
  lease = lease.kind() == v1::Job::TUNE ? lease : agent.wait_for_lease();
  CHECK(lease.problem().dims(0).value() == 4096);
}

TEST_CASE("tune never starts no job and the miss is counted in the want list") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.job_id().empty());
  DaemonFixture::eventually([&] { return daemon.status().misses_wanted() == 1; });
  CHECK(agent.tuned() == 0);
}

TEST_CASE("a wait for which no job may be started gets the reason and a hit gets none") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = waiting(4096);
  request.set_tune(v1::NEVER);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  REQUIRE(agent.compile(agent.wait_for_lease()));
  CHECK(call.get().reply.why() ==
        "nothing of its bucket was measured on nvidia-h200; the question starts no job (tune=never)");
  v1::TuneRequest tune = tune_vector_add({4096});
  tune.set_detach(true);
  daemon.tune(tune);
  REQUIRE(agent.tune(agent.wait_for_lease()));
  DaemonFixture::eventually([&] { return daemon.get(request).reply.why().empty(); });
}

TEST_CASE("a miss whose job has failed recently gets the error of that job") {
  MeasuredByHand daemon;
  auto call = std::async(std::launch::async, [&] { return daemon.get(waiting(4096)); });
  REQUIRE(daemon.agent.fail(daemon.agent.wait_for_lease(), "no configuration survived"));
  REQUIRE(call.get().status.ok());
  CHECK(daemon.get(waiting(4096)).reply.why() ==
        "nothing of its bucket was measured on nvidia-h200; no job was started, the last one failed: no "
        "configuration survived");
}

TEST_CASE("what is wanted of a bucket is wanted no longer when its representative was tuned") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = vector_add(3000);
  request.set_tune(v1::NEVER);
  REQUIRE(daemon.get(request).status.ok());
  DaemonFixture::eventually([&] { return daemon.status().misses_wanted() == 1; });
  daemon.tune(tune_vector_add({4096}));
  CHECK(daemon.status().misses_wanted() == 0);
}

TEST_CASE("a miss whose job has failed recently starts none and is counted in the want list") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = vector_add(4096);
  request.set_on_miss(v1::FAIL);
  daemon.get(request);
  REQUIRE(agent.fail(agent.wait_for_lease()));
  CHECK(daemon.status().misses_wanted() == 0);
  CHECK(daemon.get(request).status.error_message().find("job") == std::string::npos);
  DaemonFixture::eventually([&] { return daemon.status().misses_wanted() == 1; });
  CHECK(daemon.jobs().empty());
}

TEST_CASE("a stale record is measured again under the validators of the GPU that is offered") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  daemon.tune(request);
  REQUIRE(agent.tune(agent.wait_for_lease()));
  v1::OfferedDevices devices;
  *devices.add_devices() = hello_with(h200_facts()).devices(0);
  devices.mutable_devices(0)->mutable_driver()->set_version("590.11.01");
  agent.send_devices(devices);
  v1::GetVariantRequest question = vector_add(4096);
  question.mutable_device()->mutable_driver()->set_version("590.11.01");
  DaemonFixture::eventually([&] { return !daemon.get(question).reply.job_id().empty(); });
  CHECK(agent.wait_for_lease().blocks().empty());
}

TEST_CASE("a record that would be as stale again for the caller is not measured again") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  v1::GetVariantRequest other_driver = vector_add(4096);
  other_driver.mutable_device()->mutable_driver()->set_version("590.11.01");
  v1::GetVariantRequest other_limit = vector_add(4096);
  other_limit.mutable_device()->mutable_facts()->set_power_limit_mw(600'000);
  for (const v1::GetVariantRequest& request : {other_driver, other_limit}) {
    const Got got = daemon.get(request);
    REQUIRE(got.status.ok());
    CHECK(got.reply.provenance().departures(0) == v1::STALE);
    CHECK(got.reply.job_id().empty());
  }
  DaemonFixture::eventually([&] { return daemon.status().misses_wanted() == 1; });
}

TEST_CASE("on_miss fail is NOT_FOUND") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_on_miss(v1::FAIL);
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("the deadline of a waiting call passes without disturbing the job") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  CHECK(daemon.get(waiting(4096), std::chrono::seconds(1)).status.error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(agent.tune(agent.wait_for_lease()));
  DaemonFixture::eventually([&] { return daemon.jobs(true).at(0).state() == v1::Job::DONE; });
}

TEST_CASE("accept without departures gives exact answers alone") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  v1::GetVariantRequest request = vector_add(3000);
  request.set_restrict_accept(true);
  request.set_tune(v1::NEVER);
  const grpc::Status none = daemon.get(request).status;
  CHECK(none.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK_THAT(none.error_message(), Catch::Contains("the best there is has the match \"bucket\""));
  request.add_accept(v1::BUCKET);
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures(0) == v1::BUCKET);
}

}  // namespace
}  // namespace cubind::test
