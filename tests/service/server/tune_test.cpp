#include <catch2/catch.hpp>

#include <future>
#include <thread>

#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "server/service/context.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kAll = 1000;  // configurations of vector_add

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

v1::TuneRequest detached() {
  v1::TuneRequest request = tune_vector_add({5000});
  request.set_detach(true);
  return request;
}

TEST_CASE("tune measures exactly the given problems and a fresh one is not measured again") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached());
  REQUIRE(agent.tune(agent.wait_for_lease(), kAll));
  const auto events = daemon.tune(tune_vector_add({5000}));
  REQUIRE(events.size() == 1);
  CHECK(events[0].already_fresh());
  CHECK(events[0].provenance().measured_problem().dims(0).value() == 5000);
  CHECK(daemon.jobs(true).size() == 1);
}

/// The problems of the leases, in their order.
std::vector<std::string> leased_for(v1::TuneRequest request) {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  request.set_detach(true);
  daemon.tune(request);
  std::vector<std::string> leased;
  for (int i = 0; i < request.problems_size(); ++i) {
    const v1::LeaseGrant lease = agent.wait_for_lease();
    leased.push_back(to_string(problem_from_wire(lease.problem(), "problem")));
    REQUIRE(agent.tune(lease));
  }
  return leased;
}

TEST_CASE("the problems of one Tune are leased by falling work and equal ones in the order given") {
  v1::TuneRequest request = tune_vector_add({1024, 8192, 8192, 16384});
  request.mutable_problems(1)->mutable_types(0)->set_type("f16");
  request.mutable_problems(2)->mutable_types(0)->set_type("bf16");
  CHECK(leased_for(request) ==
        std::vector<std::string>{"N=16384,T=f32", "N=8192,T=f16", "N=8192,T=bf16", "N=1024,T=f32"});
}

TEST_CASE("a short kernel comes before one with more work unless the search has a budget") {
  v1::TuneRequest request = tune_vector_add({8'000'000, 1024});
  CHECK(leased_for(request) == std::vector<std::string>{"N=1024,T=f32", "N=8000000,T=f32"});
  request.set_max_trials(4);
  CHECK(leased_for(request) == std::vector<std::string>{"N=8000000,T=f32", "N=1024,T=f32"});
}

TEST_CASE("a record under another power limit than the GPU's is not fresh") {
  DaemonFixture daemon;
  v1::DeviceFacts facts = h200_facts();
  facts.set_power_limit_mw(700'000);
  FakeAgent agent(daemon.address(), hello_with(facts));
  daemon.tune(detached());
  REQUIRE(agent.tune(agent.wait_for_lease(), kAll));
  CHECK(daemon.tune(detached()).at(0).already_fresh());
  v1::OfferedDevices devices;
  *devices.add_devices() = hello_with(facts).devices(0);
  devices.mutable_devices(0)->mutable_facts()->set_power_limit_mw(500'000);
  agent.send_devices(devices);
  DaemonFixture::eventually([&] { return !daemon.tune(detached()).at(0).already_fresh(); });
  CHECK(agent.wait_for_lease().blocks().empty());
}

TEST_CASE("a grown search space is tuned again and its lease holds what was measured before") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached());
  REQUIRE(agent.tune(agent.wait_for_lease(), 7));
  CHECK_FALSE(daemon.tune(detached()).at(0).already_fresh());
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.trials_size() == 7);
  CHECK(lease.blocks_size() == 7);
  REQUIRE(agent.tune(lease, kAll));
  CHECK(daemon.tune(detached()).at(0).already_fresh());
}

TEST_CASE("what ran out of memory in a job does not have the problem tuned again") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(detached());
  const v1::LeaseGrant lease = agent.wait_for_lease();
  auto trials = fake_trials(lease, kAll);
  trials.back().header.set_outcome(v1::OUT_OF_MEMORY);
  REQUIRE(agent.send_batch(lease, batch_of(trials)));
  v1::JobResult result = result_of(lease, trials[0]);
  v1::OutcomeCount& count = *result.add_outcomes();
  count.set_outcome(v1::OUT_OF_MEMORY);
  count.set_count(1);
  REQUIRE(agent.send_result(lease, result));
  CHECK(daemon.tune(detached()).at(0).already_fresh());
}

TEST_CASE("a Tune whose caller has left before its jobs were queued queues none") {
  DaemonFixture daemon;
  bool queued = true;
  // How long the daemon takes to hear of it is not known: with more and more time.
  for (int attempt = 1; queued && attempt <= 6; ++attempt) {
    std::promise<void> go;
    daemon.context().background.post("", [begin = go.get_future().share()] { begin.wait(); });
    grpc::ClientContext context;
    const auto reader = daemon.stub().Tune(&context, tune_vector_add({attempt * 1000}));
    context.TryCancel();
    CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
    std::this_thread::sleep_for(std::chrono::milliseconds(50) * (1 << attempt));
    go.set_value();
    std::promise<void> after_tune;
    daemon.context().background.post("~", [&] { after_tune.set_value(); });
    after_tune.get_future().wait();
    daemon.context().jobs.run([] {});
    queued = std::ranges::any_of(
        daemon.jobs(), [&](const v1::Job& job) { return job.problem().dims(0).value() == attempt * 1000; });
  }
  CHECK_FALSE(queued);
}

TEST_CASE("reproducible and invariant results are asked of the agent and have records of their own") {
  v1::Numerics numerics;
  numerics.set_kind(GENERATE(v1::Numerics::REPRODUCIBLE, v1::Numerics::INVARIANT));
  if (numerics.kind() == v1::Numerics::INVARIANT) {
    numerics.set_invariant_dim("N");
  }
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::TuneRequest tune = detached();
  *tune.mutable_numerics() = numerics;
  daemon.tune(tune);
  const v1::LeaseGrant lease = agent.wait_for_lease();
  CHECK(lease.numerics().kind() == numerics.kind());
  CHECK(lease.numerics().invariant_dim() == numerics.invariant_dim());
  REQUIRE(agent.tune(lease));
  v1::GetVariantRequest request = vector_add(5000);
  request.set_tune(v1::NEVER);
  CHECK(daemon.get(request).reply.provenance().evidence() == v1::NONE);
  *request.mutable_numerics() = numerics;
  CHECK(daemon.get(request).reply.provenance().evidence() == v1::MEASURED);
}

TEST_CASE("jobs of one problem are told apart by what they were asked for") {
  DaemonFixture daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  daemon.tune(request);
  request.mutable_policy()->set_warm_l2(true);
  request.mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
  request.mutable_numerics()->set_invariant_dim("N");
  request.set_namespace_("nightly");
  daemon.tune(request);
  const std::vector<v1::Job> jobs = daemon.jobs();
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].numerics().kind() == v1::Numerics::TOLERANCE);
  CHECK(jobs[1].policy().warm_l2());
  CHECK(jobs[1].numerics().invariant_dim() == "N");
  CHECK(jobs[1].namespace_() == "nightly");
}

}  // namespace
}  // namespace cubind::test
