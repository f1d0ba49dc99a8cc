#include <catch2/catch.hpp>
#include <future>

#include "server/service/context.hpp"
#include "server/service/known_answer.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/full_disk.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("without an artifact in time the answer is UNAVAILABLE with the id of the job that compiles") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_compile_wait_ms(100);
  request.set_tune(v1::NEVER);
  const Got got = daemon.get(request);
  CHECK(got.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK_THAT(got.status.error_message(),
             Contains(lease.job_id()) && Contains("ask again, or with on_miss=wait"));
}

TEST_CASE("without an agent the answer is UNAVAILABLE and says so, however one asks") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = vector_add(4096);
  for (const auto on_miss : {v1::SERVE, v1::WAIT}) {
    request.set_on_miss(on_miss);
    const grpc::Status status = daemon.get(request).status;
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK_THAT(status.error_message(), Contains("none is there") && !Contains("ask again"));
  }
}

TEST_CASE("where no agent has an NVRTC the answer says so and how to get one, however one asks") {
  DaemonFixture daemon;
  v1::Hello hello = compiling_hello();
  hello.clear_toolchains();
  FakeAgent agent(daemon.address(), hello);
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  v1::GetVariantRequest request = vector_add(4096);
  for (const auto on_miss : {v1::SERVE, v1::WAIT}) {
    request.set_on_miss(on_miss);
    const grpc::Status status = daemon.get(request).status;
    CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK_THAT(status.error_message(), Contains("none has NVRTC 12 or 13") && Contains("CUBIND_CUDA_HOME") &&
                                           Contains("nvidia-cuda-nvrtc") && !Contains("ask again"));
  }
  AutoAgent compiler(daemon.address(), compiling_hello("with-nvrtc"));
  DaemonFixture::eventually([&] { return daemon.get(vector_add(4096)).status.ok(); });
}

TEST_CASE("where nothing else can answer the wait for a compile is longer than where another candidate can") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(call.wait_for(std::chrono::milliseconds(2500)) == std::future_status::timeout);
  REQUIRE(agent.compile(lease));
  CHECK(call.get().status.ok());
}

/// A daemon that has the default for an A100, and that knows a winner which is not compiled for it.
struct BetterIsNotCompiled : DaemonFixture {
  BetterIsNotCompiled() : agent(address(), hello_with(h200_facts())) {
    v1::TuneRequest tune_request = tune_vector_add({4096});
    tune_request.set_detach(true);
    tune(tune_request);
    const v1::LeaseGrant lease = agent.wait_for_lease();
    const auto trials = fake_trials(lease, 2);
    REQUIRE(agent.send_batch(lease, batch_of(trials)));
    REQUIRE(agent.send_result(lease, result_of(lease, trials[1])));
    request.set_tune(v1::NEVER);
    request.mutable_device()->mutable_facts()->set_cc_major(8);
    v1::GetVariantRequest by_default = request;
    by_default.set_restrict_accept(true);
    by_default.add_accept(v1::DEFAULT_CONFIGURATION);
    auto call = std::async(std::launch::async, [&] { return get(by_default); });
    REQUIRE(agent.compile(agent.wait_for_lease()));
    REQUIRE(call.get().status.ok());
  }
  FakeAgent agent;
  v1::GetVariantRequest request = vector_add(4096);
};

TEST_CASE("after compile_wait the best candidate that has an artifact is served") {
  BetterIsNotCompiled daemon;
  daemon.request.set_compile_wait_ms(300);
  const auto begun = std::chrono::steady_clock::now();
  const Got got = daemon.get(daemon.request);
  CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(300));
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
}

TEST_CASE("an answer instead of a candidate that failed to compile is looked up again each time") {
  BetterIsNotCompiled daemon;
  daemon.request.set_compile_wait_ms(20000);
  auto call = std::async(std::launch::async, [&] { return daemon.get(daemon.request); });
  REQUIRE(daemon.agent.fail(daemon.agent.wait_for_lease()));
  REQUIRE(call.get().reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  REQUIRE(daemon.get(daemon.request).status.ok());
  grpc::ByteBuffer kept;
  CHECK_FALSE(answer_again(daemon.context(), daemon.request.SerializeAsString(), kept));
}

TEST_CASE("a candidate that is compiled within compile_wait is served") {
  BetterIsNotCompiled daemon;
  daemon.request.set_compile_wait_ms(20000);
  auto call = std::async(std::launch::async, [&] { return daemon.get(daemon.request); });
  REQUIRE(daemon.agent.compile(daemon.agent.wait_for_lease()));
  const Got got = call.get();
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures(0) == v1::OTHER_DEVICE);
}

TEST_CASE("a compile is waited for within the caller's deadline and not beyond") {
  BetterIsNotCompiled daemon;
  daemon.request.set_compile_wait_ms(20000);
  const Got got = daemon.get(daemon.request, std::chrono::seconds(1));
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
}

TEST_CASE("while an agent is on its way a question waits for it to compile") {
  DaemonFixture daemon;
  ServiceContext& context = daemon.context();
  context.jobs.run([&] {
    context.scheduler.agents().expect_until(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  });
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  request.set_compile_wait_ms(20000);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  DaemonFixture::eventually([&] { return daemon.jobs().size() == 1; });
  AutoAgent compiler(daemon.address(), compiling_hello());
  CHECK(call.get().status.ok());
}

TEST_CASE("where no compile can be queued the answer is UNAVAILABLE with the reason") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), compiling_hello());
  grpc::Status status;
  {
    const FullDisk full(0);
    status = daemon.get(vector_add(4096)).status;
  }
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(), Contains("a compile could not be queued: store"));
  DaemonFixture::eventually([&] { return daemon.get(vector_add(4096)).status.ok(); });
}

TEST_CASE(
    "a compiled cubin that finds no room in the store is an error of its own and compiled again when there "
    "is some") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  request.set_compile_wait_ms(20000);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  const v1::LeaseGrant lease = agent.wait_for_lease();
  grpc::Status status;
  {
    const FullDisk full(0);
    CHECK_FALSE(agent.compile(lease));
    status = call.get().status;
    CHECK_THAT(daemon.jobs().at(0).note(), Contains("could not be stored: store: "));
  }
  CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(status.error_message(), Contains("job " + lease.job_id() + " has compiled a candidate") &&
                                         Contains("could not be stored") &&
                                         Contains("is repeated when there is room"));
  REQUIRE(agent.compile(agent.wait_for_lease()));
  CHECK(daemon.get(request).status.ok());
}

TEST_CASE("a compile that fails ends the wait with its error and is not tried again for every call") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  request.set_compile_wait_ms(20000);
  auto call = std::async(std::launch::async, [&] { return daemon.get(request); });
  REQUIRE(agent.fail(agent.wait_for_lease(), "error: expected a ';'"));
  const grpc::Status status = call.get().status;
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Contains("expected a ';'"));
  CHECK(daemon.get(request).status.error_message() == status.error_message());
  CHECK(daemon.jobs(true).size() == 1);
}

}  // namespace
}  // namespace cubind::test
