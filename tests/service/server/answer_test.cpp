#include <catch2/catch.hpp>

#include "server/service/context.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::test {
namespace {

/// A daemon whose store knows vector_add at 4096 on an H200.
TEST_CASE("the reply is a rule with the bucket's interval constraints and launch expressions") {
  TunedDaemon daemon;
  const v1::Rule rule = daemon.get(vector_add(3000)).reply.rule();
  REQUIRE(rule.intervals_size() == 1);
  CHECK(rule.intervals(0).dim() == "N");
  CHECK(rule.intervals(0).lower() == 2049);
  CHECK(rule.intervals(0).upper() == 4096);
  CHECK(rule.constraints_size() >= 1);
  CHECK(rule.launches(0).grid(0).find("cdiv(N") == 0);
  CHECK(rule.max_threads_per_block() == 1024);
  CHECK(rule.max_shared_bytes() == 232448);
  CHECK(rule.device_constants_size() == 4);
}

TEST_CASE("problems of the bucket with records of their own are listed in the rule") {
  TunedDaemon daemon;
  daemon.tune(tune_vector_add({3000}));
  const Got in_bucket = daemon.get(vector_add(2500));
  REQUIRE(in_bucket.reply.rule().own_records_size() == 2);
  CHECK(in_bucket.reply.provenance().measured_problem().dims(0).value() == 4096);
  const Got own = daemon.get(vector_add(3000));
  CHECK(own.reply.provenance().departures().empty());
  CHECK(own.reply.rule().intervals(0).lower() == 3000);
  CHECK(own.reply.rule().intervals(0).upper() == 3000);
}

TEST_CASE("the rule of an answer that does not stand for its bucket holds for the asked problem alone") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(8192);
  request.set_tune(v1::NEVER);
  const v1::GetVariantReply nearest = daemon.get(request).reply;
  REQUIRE(nearest.provenance().departures(0) == v1::NEAREST_PROBLEM);
  CHECK(nearest.rule().intervals(0).lower() == 8192);
  CHECK(nearest.rule().intervals(0).upper() == 8192);
}

TEST_CASE("the reply says what makes the answer trustworthy") {
  TunedDaemon daemon;
  const v1::Provenance from = daemon.get(vector_add(3000)).reply.provenance();
  CHECK(from.departures(0) == v1::BUCKET);
  CHECK(from.evidence() == v1::MEASURED);
  CHECK(from.generation().number() == 1);
  CHECK(from.generation().store_id() == daemon.status().generation().store_id());
  CHECK(from.measured_problem().dims(0).value() == 4096);
  CHECK(from.measured_device() == "nvidia-h200");
  CHECK(from.driver().version() == "580.159.04");
  CHECK(from.toolchain() == "nvrtc 13.0");
  CHECK(from.timing().measured_at() == "2024-11-21T12:00:00Z");
  CHECK(from.timing().median_us() == 20.0);
  CHECK(from.timing().low_us() == 19.9);
  CHECK(from.timing().high_us() == 20.1);
  CHECK(from.timing().samples() == 12);
  CHECK(from.timing().sm_mhz() == 1980);
  CHECK_FALSE(from.timing().contended());
  CHECK(from.timing().gain_over_default() == 1.0);
  CHECK(from.verification().reference() == "kernel");
  CHECK(from.verification().problems_size() == 1);
  CHECK(from.same_bytes_measured());
}

TEST_CASE("the plan is evaluated for the asked problem and never for the representative") {
  TunedDaemon daemon;
  const v1::LaunchPlan asked = daemon.get(vector_add(2500)).reply.plan();
  const v1::LaunchPlan measured = daemon.get(vector_add(4096)).reply.plan();
  CHECK(asked.launches(0).parameters(0).extent_bytes() == 10000);
  CHECK(measured.launches(0).parameters(0).extent_bytes() == 16384);
}

TEST_CASE("another driver branch or power limit makes an answer stale and no driver makes nothing stale") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  request.mutable_device()->mutable_driver()->set_version("590.11.01");
  REQUIRE(daemon.get(request).reply.provenance().departures_size() == 1);
  CHECK(daemon.get(request).reply.provenance().departures(0) == v1::STALE);
  request.mutable_device()->clear_driver();
  CHECK(daemon.get(request).reply.provenance().departures().empty());
  request.mutable_device()->mutable_facts()->set_power_limit_mw(600000);
  CHECK(daemon.get(request).reply.provenance().departures(0) == v1::STALE);
}

TEST_CASE("a cubin that the caller's driver cannot load is refused with both versions") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->mutable_driver()->set_cuda(12080);
  request.mutable_device()->mutable_driver()->set_version("570.86.15");
  const grpc::Status status = daemon.get(request).status;
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(status.error_message().find("570.86.15") != std::string::npos);
  CHECK(status.error_message().find("13.0") != std::string::npos);
}

TEST_CASE("a device is named by its label and by label and digest") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.device() == "nvidia-h200");
  request.mutable_device()->set_label("nvidia-h200@" +
                                      Digest::from_bytes(got.reply.device_class())->hex().substr(0, 8));
  CHECK(daemon.get(request).status.ok());
}

TEST_CASE("a label of several classes means the one with records and is an error where several have them") {
  TunedDaemon daemon;
  v1::DeviceFacts smaller = h200_facts();
  smaller.set_sm_count(114);
  AutoAgent other(daemon.address(), hello_with(smaller, "other"));
  DaemonFixture::eventually([&] { return daemon.status().agents() == 2; });
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  CHECK(daemon.get(request).reply.provenance().departures().empty());
  daemon.tune(tune_vector_add({4096}, smaller));
  const grpc::Status status = daemon.get(request).status;
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().find("114 SMs") != std::string::npos);
  CHECK(status.error_message().find("132 SMs") != std::string::npos);
}

TEST_CASE("a device class without records goes with its agent, and one that a job waits for stays stored") {
  TunedDaemon daemon;
  v1::DeviceFacts smaller = h200_facts();
  smaller.set_sm_count(131);
  const bool has_job = GENERATE(false, true);
  {
    FakeAgent other(daemon.address(), hello_with(smaller, "other"));
    if (has_job) {
      v1::TuneRequest tune = tune_vector_add({5'000'000}, smaller);
      tune.set_detach(true);
      daemon.tune(tune);
    }
  }
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  CHECK(daemon.get(request).status.ok());
  CHECK(daemon.status().devices_size() == 1);
  daemon.restart();
  CHECK(daemon.get(request).status.ok());
  CHECK(daemon.status().devices_size() == 1);
  std::size_t stored = 0;
  daemon.context().store.read([&](StoreReader& reader) { stored = reader.device_classes().size(); });
  CHECK(stored == (has_job ? 2 : 1));
  CHECK(daemon.jobs().size() == (has_job ? 1 : 0));
}

TEST_CASE("another device class gets the winner compiled for it and the answer says so") {
  TunedDaemon daemon;
  v1::DeviceFacts a100 = h200_facts();
  a100.set_name("NVIDIA A100");
  a100.set_cc_major(8);
  a100.set_sm_count(108);
  v1::GetVariantRequest request = vector_add(4096, a100);
  request.set_tune(v1::NEVER);
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures(0) == v1::OTHER_DEVICE);
  CHECK(got.reply.provenance().measured_device() == "nvidia-h200");
  CHECK(got.reply.artifact().architecture() == "sm_80");
  CHECK_FALSE(got.reply.provenance().same_bytes_measured());
}

TEST_CASE("an artifact that names another cubin than its record is compiled again and never served") {
  DaemonFixture daemon;
  std::string before;
  {
    AutoAgent agent(daemon.address(), hello_with(h200_facts()));
    daemon.tune(tune_vector_add({4096}));
    before = daemon.get(vector_add(4096)).reply.artifact().digest();
  }
  daemon.restart([&] {
    daemon.damage(
        "UPDATE artifacts SET cubin = "
        "(SELECT cubin FROM blobs WHERE cubin <> artifacts.cubin ORDER BY cubin LIMIT 1)");
  });
  const std::int64_t asked = GENERATE(4096, 3000);  // the record's problem, and one of its bucket
  v1::GetVariantRequest request = vector_add(asked);
  request.set_tune(v1::NEVER);
  CHECK_FALSE(daemon.get(request).status.ok());
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  const v1::GetVariantReply after = daemon.get(request).reply;
  CHECK(after.artifact().digest() == before);
  CHECK(after.provenance().same_bytes_measured());
}

TEST_CASE("status devices and kernels tell what the daemon has") {
  TunedDaemon daemon;
  const v1::GetStatusReply status = daemon.status();
  CHECK(status.records() == 1);
  CHECK(status.agents() == 1);
  CHECK(status.toolchains(0) == "nvrtc 13.0");
  CHECK(status.generation().store_id().size() == 16);
  REQUIRE(status.devices_size() == 1);
  CHECK(status.devices(0).offered());
  CHECK(status.devices(0).records() == 1);
  grpc::ClientContext context;
  v1::ListKernelsReply kernels;
  REQUIRE(daemon.stub().ListKernels(&context, {}, &kernels).ok());
  CHECK(static_cast<std::size_t>(kernels.kernels_size()) ==
        load_specs({source_dir() / "variants"}).specs.size());
}

TEST_CASE("a cubin that is damaged on the disk is compiled again and served") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_compile_wait_ms(20'000);
  std::string digest;
  {
    AutoAgent agent(daemon.address(), hello_with(h200_facts()));
    daemon.tune(tune_vector_add({4096}));
    digest = daemon.get(request).reply.artifact().digest();
  }
  daemon.damage(GENERATE("UPDATE blobs SET zstd = x'00'", "UPDATE blobs SET cubin_bytes = cubin_bytes / 2",
                         "UPDATE artifacts SET fact = x'00'"));
  daemon.restart();
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  const Got got = daemon.get(request);
  CHECK(got.status.error_message() == "");
  CHECK(got.reply.artifact().digest() == digest);
  CHECK(agent.tuned() == 0);
}

}  // namespace
}  // namespace cubind::test
