// Choices as if nothing were known, and long measurements of what was chosen.
#include <catch2/catch.hpp>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::TuneRequest left_alone(v1::TuneRequest request) {
  request.set_detach(true);
  return request;
}

v1::TuneRequest from_scratch(std::int64_t n) {
  v1::TuneRequest request = left_alone(tune_vector_add({n}));
  request.set_from_scratch(true);
  return request;
}

std::vector<v1::TuneEvent> events_of(DaemonFixture& daemon, const std::string& job) {
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_id(job);
  const auto reader = daemon.stub().WatchJob(&context, request);
  std::vector<v1::TuneEvent> events;
  for (v1::TuneEvent event; reader->Read(&event);) {
    events.push_back(event);
  }
  REQUIRE(reader->Finish().ok());
  return events;
}

}  // namespace

TEST_CASE("a choice as if nothing were known is reported and changes no record") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(left_alone(tune_vector_add({4096})));
  const v1::LeaseGrant first = agent.wait_for_lease();
  REQUIRE(agent.tune(first));
  const std::string job = daemon.tune(from_scratch(4096)).at(0).job().id();
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.blocks().empty());
  CHECK(lease.incumbent_trial().empty());
  CHECK(lease.hints().empty());
  CHECK(lease.job_key() != first.job_key());  // other proposals, other orders of rounds
  auto trials = fake_trials(lease, 3);
  REQUIRE(agent.send_batch(lease, batch_of(trials, 1, 10.0)));
  std::thread finish([&] { agent.send_result(lease, result_of(lease, trials[2], 10.0)); });
  const auto events = events_of(daemon, job);
  finish.join();
  CHECK(events.back().winner().SerializeAsString() == trials[2].header.configuration().SerializeAsString());
  const Got got = daemon.get(vector_add(4096));
  CHECK(got.reply.provenance().generation().number() == 1);
  CHECK(got.reply.provenance().timing().median_us() == 20.0);
}

TEST_CASE("a choice as if nothing were known is another job than an open search") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  const std::string search = daemon.tune(left_alone(tune_vector_add({4096}))).at(0).job().id();
  const std::string choice = daemon.tune(from_scratch(4096)).at(0).job().id();
  CHECK(choice != search);
  CHECK(daemon.jobs().size() == 2);
}

TEST_CASE("listed configurations and their rounds reach the agent") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(left_alone(tune_vector_add({4096})));
  const v1::LeaseGrant first = agent.wait_for_lease();
  const auto trials = fake_trials(first, 2);
  REQUIRE(agent.tune(first));
  v1::TuneRequest request = left_alone(tune_vector_add({4096}));
  *request.add_listed() = trials[1].header.configuration();
  request.set_rounds(700);
  daemon.tune(request);
  const v1::LeaseGrant lease = agent.wait_for_lease();
  REQUIRE(lease.listed_size() == 1);
  CHECK(lease.listed(0).SerializeAsString() == trials[1].header.configuration().SerializeAsString());
  CHECK(lease.rounds() == 700);
  CHECK(lease.blocks().empty());
}

TEST_CASE("what does not go with listed configurations is refused at its field") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  const auto error_of = [&](const v1::TuneRequest& request) {
    grpc::Status status;
    daemon.tune(request, &status);
    return status.error_message();
  };
  v1::TuneRequest request = left_alone(tune_vector_add({4096}));
  request.set_rounds(10);
  CHECK_THAT(error_of(request), Contains("rounds: goes with `listed`"));
  request.add_listed()->add_values()->set_name("THREAD");
  CHECK_THAT(error_of(request), Contains("listed[0]"));
  request.set_rounds(2001);
  CHECK_THAT(error_of(request), Contains("rounds: 2001 is above the limit of 2000"));
  request = from_scratch(4096);
  request.add_listed();
  CHECK_THAT(error_of(request), Contains("listed: goes with one problem, and without `from_scratch`"));
}

}  // namespace cubind::test
