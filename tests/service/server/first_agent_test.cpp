// Calls that come while the daemon's own agent is still starting.
#include <catch2/catch.hpp>

#include <future>

#include "server/service/context.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;

constexpr std::chrono::hours kStarts{1};

/// A daemon whose agent is on its way for that long.
struct Starting : DaemonFixture {
  explicit Starting(milliseconds time = kStarts) { expect_agent(time); }

  void expect_agent(milliseconds time) {
    ServiceContext& shared = context();
    shared.jobs.run([&] { shared.scheduler.agents().expect_until(std::chrono::steady_clock::now() + time); });
  }
};

template <typename Call>
auto begun(Call call) {
  auto result = std::async(std::launch::async, std::move(call));
  REQUIRE(result.wait_for(milliseconds(300)) == std::future_status::timeout);
  return result;
}

v1::TuneRequest without_device() {
  v1::TuneRequest request = tune_vector_add({4096});
  request.clear_device();
  return request;
}

v1::GetVariantRequest by_label() {
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  return request;
}

TEST_CASE("a tune that names no device waits for the agent and takes its GPU") {
  Starting daemon;
  auto call = begun([&] { return daemon.tune(without_device()); });
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  CHECK(call.get().back().job().state() == v1::Job::DONE);
}

TEST_CASE("a device class that only the starting agent brings is waited for") {
  Starting daemon;
  auto call = begun([&] { return daemon.get(by_label()); });
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  CHECK(call.get().status.ok());
}

TEST_CASE("a question that waits for a measurement waits for the agent") {
  Starting daemon;
  v1::GetVariantRequest request = by_label();
  request.set_on_miss(v1::WAIT);
  auto call = begun([&] { return daemon.get(request); });
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  const Got got = call.get();
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().evidence() == v1::MEASURED);
}

TEST_CASE("a question that waits for a measurement gets a stored one without an agent") {
  Starting daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_on_miss(v1::WAIT);
  {
    AutoAgent agent(daemon.address(), hello_with(h200_facts()));
    REQUIRE(daemon.get(request).reply.provenance().evidence() == v1::MEASURED);
  }
  DaemonFixture::eventually([&] { return daemon.status().agents() == 0; });
  daemon.expect_agent(kStarts);
  CHECK(daemon.get(request).reply.provenance().evidence() == v1::MEASURED);
}

TEST_CASE("an agent that does not come ends the wait with the error that says so") {
  Starting daemon(milliseconds(500));
  grpc::Status tuned;
  daemon.tune(without_device(), &tuned);
  CHECK(tuned.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(tuned.error_message(), Contains("device: no agent is connected"));
  CHECK(daemon.get(by_label()).status.error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("a daemon that stops does not wait for its agent") {
  Starting daemon;
  grpc::Status tuned;
  auto call = begun([&] { daemon.tune(without_device(), &tuned); });
  daemon.stop();
  call.get();
  CHECK_FALSE(tuned.ok());
}

TEST_CASE("an agent without a GPU says why in the error of a tune") {
  DaemonFixture daemon;
  v1::Hello hello = compiling_hello();
  hello.set_no_device_because("the driver shows no GPU");
  AutoAgent agent(daemon.address(), hello);
  grpc::Status tuned;
  daemon.tune(without_device(), &tuned);
  CHECK_THAT(tuned.error_message(),
             Contains("no agent offers a GPU: the driver shows no GPU; name a device") &&
                 Contains("name a daemon with a GPU by CUBIND_ADDRESS"));
}

}  // namespace
}  // namespace cubind::test
