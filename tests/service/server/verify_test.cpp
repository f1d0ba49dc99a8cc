// Records that are measured again: on request, and by themselves.
#include <catch2/catch.hpp>

#include <chrono>

#include "plan/search.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

constexpr std::size_t kMany = 1000;  // as many configurations as vector_add has, and more
constexpr const char* kUpdated = "590.11.01";
constexpr std::uint32_t kLowerLimit = 500'000;  // mW

v1::TuneRequest verify(bool all = false) {
  v1::TuneRequest request;
  request.mutable_verify()->set_all(all);
  request.set_detach(true);
  return request;
}

v1::TuneRequest in_background(v1::TuneRequest request) {
  request.set_detach(true);
  return request;
}

/// A record of 4096 elements with two finalists.
struct Measured : DaemonFixture {
  Measured() : agent(address(), hello_with(h200_facts())) { measure(4096); }

  void measure(std::int64_t n) {
    tune(in_background(tune_vector_add({n})));
    const v1::LeaseGrant lease = agent.wait_for_lease();
    trials = fake_trials(lease, kMany);
    v1::JobResult result = result_of(lease, trials[0]);
    result.add_finalists(trials[1].header.trial_key());
    REQUIRE(agent.send_batch(lease, batch_of(trials)));
    REQUIRE(agent.send_result(lease, result));
  }

  void update_driver() {
    v1::OfferedDevices devices;
    *devices.add_devices() = hello_with(h200_facts()).devices(0);
    devices.mutable_devices(0)->mutable_driver()->set_version(kUpdated);
    agent.send_devices(devices);
    eventually([&] {
      grpc::ClientContext context;
      v1::ListDevicesReply reply;
      return stub().ListDevices(&context, {}, &reply).ok() && reply.devices(0).driver().version() == kUpdated;
    });
  }

  void lower_power_limit() {
    v1::OfferedDevices devices;
    *devices.add_devices() = hello_with(h200_facts()).devices(0);
    devices.mutable_devices(0)->mutable_facts()->set_power_limit_mw(kLowerLimit);
    agent.send_devices(devices);
    eventually([&] { return tune(verify()).size() == 1; });
  }

  FakeAgent agent;
  std::vector<FakeTrial> trials;
};

bool is_same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

TEST_CASE("a stale record is measured again from its best and the caller hears what was known before") {
  Measured daemon;
  daemon.update_driver();
  const auto events = daemon.tune(verify());
  REQUIRE(events.size() == 1);
  CHECK(is_same(events[0].before().winner(), daemon.trials[0].header.configuration()));
  CHECK(events[0].before().provenance().timing().median_us() == 20.0);
  CHECK(events[0].before().provenance().driver().version() == "580.159.04");
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  REQUIRE(lease.listed_size() == 2);
  CHECK(is_same(lease.listed(0), daemon.trials[0].header.configuration()));
  CHECK(is_same(lease.listed(1), daemon.trials[1].header.configuration()));
  CHECK(is_same(lease.incumbent(), lease.listed(0)));
  CHECK(lease.only_when_idle());
  CHECK(lease.blocks().empty());
  CHECK(lease.hints().empty());
  const auto again = fake_trials(lease, 2, fake_toolchain(), kUpdated);
  REQUIRE(daemon.agent.send_batch(lease, batch_of(again)));
  REQUIRE(daemon.agent.send_result(lease, result_of(lease, again[0])));
  CHECK(daemon.tune(verify()).empty());
}

TEST_CASE("a record that is not stale is measured again only with all and keeps what was searched for it") {
  Measured daemon;
  CHECK(daemon.tune(verify()).empty());
  REQUIRE(daemon.tune(verify(true)).size() == 1);
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  CHECK(lease.blocks().empty());
  auto again = fake_trials(lease, 2);
  v1::JobResult result = result_of(lease, again[0], 21.0);
  result.mutable_search()->set_strategy(std::string(kListed));
  result.mutable_search()->set_complete(false);
  REQUIRE(daemon.agent.send_batch(lease, batch_of(again, 1, 21.0)));
  REQUIRE(daemon.agent.send_result(lease, result));
  const auto events = daemon.tune(in_background(tune_vector_add({4096})));
  CHECK(events.at(0).already_fresh());
  CHECK(events.at(0).provenance().timing().median_us() == 21.0);
}

TEST_CASE("records of two flush methods are of one question and measured again once") {
  DaemonFixture daemon;
  {
    AutoAgent agent(daemon.address(), hello_with(h200_facts()));
    daemon.tune(tune_vector_add({4096}));
  }
  daemon.restart([&] {
    const auto store = Store::open({daemon.config().database});
    store->write([](StoreWriter& writer) {
      RecordRow old = writer.records({}).at(0);
      old.question.policy.flush_method = kFlushMethod - 1;
      old.key = record_key(old.question).digest;
      writer.put_record(old);
    });
  });
  const FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  CHECK(daemon.status().records() == 2);
  CHECK(daemon.tune(verify()).empty());
  CHECK(daemon.tune(verify(true)).size() == 1);
}

TEST_CASE("a choice among listed configurations of another driver is no search") {
  Measured daemon;
  daemon.update_driver();
  daemon.tune(verify());
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  auto again = fake_trials(lease, 2, fake_toolchain(), kUpdated);
  v1::JobResult result = result_of(lease, again[0]);
  result.mutable_search()->set_strategy(std::string(kListed));
  result.mutable_search()->set_complete(false);
  REQUIRE(daemon.agent.send_batch(lease, batch_of(again)));
  REQUIRE(daemon.agent.send_result(lease, result));
  CHECK_FALSE(daemon.tune(in_background(tune_vector_add({4096}))).at(0).already_fresh());
}

TEST_CASE("a choice among listed configurations under another power limit is no search") {
  Measured daemon;
  daemon.lower_power_limit();
  const v1::LeaseGrant lease = daemon.agent.wait_for_lease();
  REQUIRE(lease.listed_size() == 2);
  auto again = fake_trials(lease, 2);
  v1::JobResult result = result_of(lease, again[0]);
  result.mutable_provenance()->mutable_timing()->set_power_limit_mw(kLowerLimit);
  result.mutable_search()->set_strategy(std::string(kListed));
  result.mutable_search()->set_complete(false);
  REQUIRE(daemon.agent.send_batch(lease, batch_of(again)));
  REQUIRE(daemon.agent.send_result(lease, result));
  CHECK(daemon.tune(verify()).empty());
  CHECK_FALSE(daemon.tune(in_background(tune_vector_add({4096}))).at(0).already_fresh());
}

TEST_CASE("a Tune makes a search of the job that only measures a record again") {
  Measured daemon;
  daemon.update_driver();
  daemon.tune(verify());
  REQUIRE(daemon.agent.wait_for_lease().listed_size() == 2);
  daemon.tune(in_background(tune_vector_add({4096})));
  const v1::LeaseGrant search = daemon.agent.wait_for_lease();
  CHECK(search.listed().empty());
  CHECK_FALSE(search.only_when_idle());
  CHECK(daemon.tune(verify()).at(0).job().id() == search.job_id());
  CHECK(daemon.agent.tune(search));
}

TEST_CASE("what each record has of its own is refused with verify") {
  DaemonFixture daemon;
  const auto error_of = [&](const v1::TuneRequest& request) {
    grpc::Status status;
    daemon.tune(request, &status);
    return status.error_message();
  };
  v1::TuneRequest request = verify();
  request.set_max_trials(5);
  CHECK_THAT(error_of(request), Contains("max_trials: stays empty with `verify`"));
  request = tune_vector_add({4096});
  request.mutable_verify();
  request.clear_device();
  CHECK_THAT(error_of(request), Contains("problems: no stale record of them was measured here"));
  request.clear_kernel();
  CHECK_THAT(error_of(request), Contains("kernel: is missing"));
}

}  // namespace cubind::test
