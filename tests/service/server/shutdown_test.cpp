// The waits that end because the daemon does.
#include <catch2/catch.hpp>

#include <future>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

void check_told(const grpc::Status& status, const std::string& job) {
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(), Catch::Contains("is shutting down") &&
                                         Catch::Contains("Job " + job + " goes on") &&
                                         Catch::Contains("cubindctl jobs --watch " + job));
}

}  // namespace

TEST_CASE("a wait for a job that ends by a shutdown says so and that the job goes on") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::GetVariantRequest request = vector_add(4096);
  request.set_on_miss(v1::WAIT);
  auto asked = std::async(std::launch::async, [&] { return daemon.get(request).status; });
  const std::string job = agent.wait_for_lease().job_id();
  auto tuned = std::async(std::launch::async, [&] {
    grpc::Status status;
    daemon.tune(tune_vector_add({4096}), &status);
    return status;
  });
  auto watched = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::WatchJobRequest watch;
    watch.set_id(job);
    const auto reader = daemon.stub().WatchJob(&context, watch);
    for (v1::TuneEvent event; reader->Read(&event);) {
    }
    return reader->Finish();
  });
  DaemonFixture::eventually([&] { return daemon.jobs().at(0).waiters() == 3; });
  daemon.stop();
  check_told(asked.get(), job);
  check_told(tuned.get(), job);
  check_told(watched.get(), job);
  daemon.restart();
  CHECK(daemon.jobs().at(0).id() == job);
}

TEST_CASE("a wait for a compile that ends by a shutdown says so and that the compile goes on") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  auto asked = std::async(std::launch::async, [&] { return daemon.get(request).status; });
  const std::string job = agent.wait_for_lease().job_id();
  DaemonFixture::eventually([&] { return daemon.jobs().at(0).waiters() == 1; });
  daemon.stop();
  check_told(asked.get(), job);
}

}  // namespace cubind::test
