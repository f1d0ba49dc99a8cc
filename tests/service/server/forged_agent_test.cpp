// Agents that send what no agent of this build sends: each is refused with a clear word and changes nothing.
#include <catch2/catch.hpp>

#include <limits>
#include <thread>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDenormal = std::numeric_limits<double>::denorm_min();
constexpr const char* kTitle = "\x1b]0;title\x07";  // changes the title of a terminal

v1::TuneRequest detached() {
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  return request;
}

/// An agent that has got the job of the only caller.
struct LeasedAgent {
  DaemonFixture daemon;
  FakeAgent agent{daemon.address(), hello_with(h200_facts())};
  const v1::LeaseGrant lease = [&] {
    daemon.tune(detached());
    return agent.wait_for_lease();
  }();
};

struct Malformed {
  const char* field;
  void (*forge)(v1::Batch& batch);
};

TEST_CASE_METHOD(LeasedAgent,
                 "a malformed batch ends the stream with its field and nothing of it is stored") {
  const auto forged = GENERATE(
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, 0); }},
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, kNan); }},
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, kDenormal); }},
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, kInfinity); }},
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, 1e308); }},
      Malformed{"batch.blocks[0].samples_us[0]",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_samples_us(0, -20); }},
      Malformed{"batch.blocks[0].judged_against_us",
                [](v1::Batch& b) { b.mutable_blocks(0)->set_judged_against_us(kInfinity); }},
      Malformed{"batch.blocks[0].timer", [](v1::Batch& b) { b.mutable_blocks(0)->set_timer(kTitle); }},
      Malformed{"batch.trials[0].toolchain.name",
                [](v1::Batch& b) { b.mutable_trials(0)->mutable_toolchain()->set_name(kTitle); }},
      Malformed{"batch.verifications[0].worst_output",
                [](v1::Batch& b) { b.mutable_verifications(0)->set_worst_output(kTitle); }},
      Malformed{"batch.verifications[0].worst_excess",
                [](v1::Batch& b) { b.mutable_verifications(0)->set_worst_excess(kInfinity); }},
      Malformed{"batch.blocks[0].tick_us", [](v1::Batch& b) { b.mutable_blocks(0)->set_tick_us(-1); }},
      Malformed{"batch.artifacts[0].compile_ms",
                [](v1::Batch& b) { b.mutable_artifacts(0)->set_compile_ms(kNan); }},
      Malformed{"batch.artifacts[0].entry_symbols",
                [](v1::Batch& b) { b.mutable_artifacts(0)->add_entries("x"); }},
      Malformed{"batch.verifications[0].worst_excess",
                [](v1::Batch& b) { b.mutable_verifications(0)->set_worst_excess(kNan); }},
      Malformed{"batch.trials[0].trial_key",
                [](v1::Batch& b) { b.mutable_trials(0)->set_trial_key("short"); }});
  CAPTURE(forged.field);
  v1::Batch batch = batch_of(fake_trials(lease, 1));
  forged.forge(batch);
  CHECK_THROWS(agent.send_batch(lease, batch));
  CHECK_THAT(agent.wait_for_end(), Contains(forged.field));
  CHECK(daemon.status().artifacts() == 0);
}

struct MalformedResult {
  const char* field;
  void (*forge)(v1::JobResult& result);
};

TEST_CASE_METHOD(LeasedAgent, "a malformed result ends the stream with its field and makes no record") {
  const auto forged = GENERATE(
      MalformedResult{"median_us",
                      [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_median_us(0); }},
      MalformedResult{
          "median_us",
          [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_median_us(1e308); }},
      MalformedResult{
          "median_us",
          [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_median_us(kDenormal); }},
      MalformedResult{
          "measured_at",
          [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_measured_at("yesterday"); }},
      MalformedResult{"measured_at",
                      [](v1::JobResult& r) {
                        r.mutable_provenance()->mutable_timing()->set_measured_at("2999-01-01T00:00:00Z");
                      }},
      MalformedResult{"timer",
                      [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_timer(kTitle); }},
      MalformedResult{"worst_excess",
                      [](v1::JobResult& r) {
                        r.mutable_provenance()->mutable_verification()->set_worst_excess(kInfinity);
                      }},
      MalformedResult{"result.search.strategy",
                      [](v1::JobResult& r) { r.mutable_search()->set_strategy(kTitle); }},
      MalformedResult{"low_us",
                      [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_low_us(kNan); }},
      MalformedResult{"high_us",
                      [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_high_us(-1); }},
      MalformedResult{
          "gain_over_default",
          [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_gain_over_default(kNan); }},
      MalformedResult{
          "measured_at",
          [](v1::JobResult& r) { r.mutable_provenance()->mutable_timing()->set_measured_at("a\nb"); }},
      MalformedResult{"result.search.seconds",
                      [](v1::JobResult& r) { r.mutable_search()->set_seconds(kNan); }},
      MalformedResult{"result.stages[0].ms", [](v1::JobResult& r) {
                        r.add_stages()->set_stage("x");
                        r.mutable_stages(0)->set_ms(kNan);
                      }});
  CAPTURE(forged.field);
  const auto trials = fake_trials(lease, 1);
  REQUIRE(agent.send_batch(lease, batch_of(trials)));
  v1::JobResult result = result_of(lease, trials[0]);
  forged.forge(result);
  CHECK_THROWS(agent.send_result(lease, result));
  CHECK_THAT(agent.wait_for_end(), Contains(forged.field));
  CHECK(daemon.status().records() == 0);
}

TEST_CASE("a forged result costs only its lease and the job's next agent makes the record") {
  DaemonFixture daemon;
  FakeAgent forger(daemon.address(), hello_with(h200_facts(), "forger"));
  daemon.tune(detached());
  const v1::LeaseGrant lease = forger.wait_for_lease();
  const auto trials = fake_trials(lease, 1);
  REQUIRE(forger.send_batch(lease, batch_of(trials)));
  const AutoAgent honest(daemon.address(), hello_with(h200_facts(), "honest"));
  CHECK_FALSE(forger.send_result(lease, result_of(lease, trials[0], 1.0)));
  DaemonFixture::eventually([&] { return daemon.status().records() == 1; });
  CHECK(honest.tuned() == 1);
  CHECK(daemon.get(vector_add(4096)).reply.provenance().timing().median_us() == 20.0);
}

TEST_CASE("a second agent with the id of a connected one is refused and the first one works on") {
  DaemonFixture daemon;
  FakeAgent first(daemon.address(), hello_with(h200_facts(), "gpu7"));
  FakeAgent second(daemon.address(), hello_with(h200_facts(), "gpu7"));
  CHECK_THAT(second.wait_for_end(), Contains("\"gpu7\" is connected"));
  daemon.tune(detached());
  CHECK(first.tune(first.wait_for_lease()));
}

struct MalformedHello {
  const char* word;
  void (*forge)(v1::Hello& hello);
};

TEST_CASE("a malformed hello is refused with its field and no agent has joined") {
  const auto forged = GENERATE(
      MalformedHello{"hello.agent_id", [](v1::Hello& h) { h.set_agent_id(kTitle); }},
      MalformedHello{"hello.agent_id", [](v1::Hello& h) { h.set_agent_id(std::string(1 << 20, 'x')); }},
      MalformedHello{"larger than max", [](v1::Hello& h) { h.set_agent_id(std::string(10 << 20, 'x')); }},
      MalformedHello{"hello.version", [](v1::Hello& h) { h.set_version(kTitle); }},
      MalformedHello{"hello.toolchains[0].name",
                     [](v1::Hello& h) { h.mutable_toolchains(0)->set_name(kTitle); }},
      MalformedHello{"hello.toolchains[0].architectures",
                     [](v1::Hello& h) { h.mutable_toolchains(0)->set_architectures(0, kTitle); }},
      MalformedHello{"hello.devices[0].uuid", [](v1::Hello& h) { h.mutable_devices(0)->set_uuid(kTitle); }},
      MalformedHello{"hello.devices[0].recorded",
                     [](v1::Hello& h) { h.mutable_devices(0)->add_recorded(kTitle); }},
      MalformedHello{"twice", [](v1::Hello& h) { *h.add_devices() = h.devices(0); }},
      MalformedHello{"hello.protocol", [](v1::Hello& h) {
                       h.set_protocol(99);
                       h.set_oldest_protocol(99);
                     }});
  CAPTURE(forged.word);
  DaemonFixture daemon;
  v1::Hello hello = hello_with(h200_facts());
  forged.forge(hello);
  FakeAgent agent(daemon.address(), hello);
  CHECK_THAT(agent.wait_for_end(), Contains(forged.word));
  CHECK(daemon.status().agents() == 0);
}

TEST_CASE_METHOD(LeasedAgent, "control characters in what an agent says of a failure reach no caller") {
  REQUIRE(agent.fail(lease, std::string("#error ") + kTitle));
  DaemonFixture::eventually([&] { return daemon.jobs(true).at(0).state() == v1::Job::FAILED; });
  CHECK_THAT(daemon.jobs(true).at(0).error(), Contains("#error \\u001b]0;title\\u0007"));
}

TEST_CASE("a check's log has no control character when its caller reads it") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello("agent"));
  v1::CheckKernelRequest request = check_vector_add();
  grpc::ClientContext context;
  v1::CheckKernelReply reply;
  grpc::Status status;
  std::thread check([&] { status = daemon.stub().CheckKernel(&context, request, &reply); });
  v1::CheckResult result;
  result.set_id(agent.wait_for_check().id());
  result.set_outcome(v1::COMPILE);
  result.set_log(std::string("#error ") + kTitle);
  agent.send_check(result);
  check.join();
  const std::string said = status.error_message() + reply.DebugString();
  CHECK(said.find('\x1b') == std::string::npos);
  CHECK_THAT(said, Contains("u001b]0;title"));
}

TEST_CASE("facts that no text of a list may hold are refused") {
  DaemonFixture daemon;
  v1::Hello hello = hello_with(h200_facts());
  hello.mutable_devices(0)->mutable_facts()->set_name("H200\n");
  FakeAgent agent(daemon.address(), hello);
  CHECK_THAT(agent.wait_for_end(), Contains("hello.devices[0].facts.name"));
}

TEST_CASE("an agent that answers another one's check is refused and the check goes on") {
  DaemonFixture daemon;
  FakeAgent owner(daemon.address(), compiling_hello("owner"));
  FakeAgent forger(daemon.address(), compiling_hello("forger"));
  const v1::CheckKernelRequest request = check_vector_add();
  grpc::ClientContext context;
  v1::CheckKernelReply reply;
  std::thread check([&] { daemon.stub().CheckKernel(&context, request, &reply); });
  v1::CheckResult forged;
  forged.set_id(owner.wait_for_check().id());
  forged.set_outcome(v1::CORRECT);
  forger.send_check(forged);
  CHECK_THAT(forger.wait_for_end(), Contains("check.id"));
  context.TryCancel();
  check.join();
}

TEST_CASE("an agent that leaves gets nothing more and its job goes to another one at once") {
  DaemonFixture daemon;
  FakeAgent leaving(daemon.address(), hello_with(h200_facts(), "leaving"));
  daemon.tune(detached());
  const v1::LeaseGrant lease = leaving.wait_for_lease();
  const auto trials = fake_trials(lease, 2);
  REQUIRE(leaving.send_batch(lease, batch_of(trials)));
  FakeAgent other(daemon.address(), hello_with(h200_facts(), "other"));
  leaving.send_leaving();
  v1::JobResult back;
  back.set_status(v1::JobResult::INTERRUPTED);
  REQUIRE(leaving.send_result(lease, back));
  const v1::LeaseGrant next = other.wait_for_lease();
  CHECK(next.job_id() == lease.job_id());
  CHECK(next.trials_size() == 2);
  CHECK_FALSE(leaving.try_lease(std::chrono::milliseconds(200)));
}

}  // namespace
}  // namespace cubind::test
