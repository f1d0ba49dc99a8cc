// The want list over gRPC.
#include <catch2/catch.hpp>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

grpc::Status refusal_of(DaemonFixture& daemon, const v1::TuneRequest& request) {
  grpc::Status status;
  daemon.tune(request, &status);
  return status;
}

v1::ListWantedReply wanted(DaemonFixture& daemon) {
  grpc::ClientContext context;
  v1::ListWantedReply reply;
  REQUIRE(daemon.stub().ListWanted(&context, {}, &reply).ok());
  return reply;
}

v1::GetVariantRequest exact(std::int64_t n) {
  v1::GetVariantRequest request = vector_add(n);
  request.set_restrict_accept(true);
  request.set_on_miss(v1::FAIL);
  return request;
}

}  // namespace

TEST_CASE("a Tune of the want list with problems of its own is refused at the field") {
  DaemonFixture daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.mutable_wanted();
  const grpc::Status status = refusal_of(daemon, request);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Contains("problems: stays empty with `wanted`"));
  request.clear_problems();
  CHECK_THAT(refusal_of(daemon, request).error_message(), Contains("device: stays empty"));
}

TEST_CASE("more of the want list than a Tune may have is refused with the limit") {
  DaemonFixture daemon;
  v1::TuneRequest request;
  request.mutable_wanted()->set_top(1001);
  const grpc::Status status = refusal_of(daemon, request);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Contains("wanted.top") && Contains("1000"));
}

TEST_CASE("a want for a device that no agent offers says so") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = exact(4096);
  request.set_tune(v1::NEVER);
  daemon.get(request);
  DaemonFixture::eventually([&] { return wanted(daemon).total() == 1; });
  CHECK(wanted(daemon).wants(0).device().starts_with("@"));
  CHECK_THAT(wanted(daemon).wants(0).obstacle(), Catch::Contains("no agent has offered its GPU"));
}

TEST_CASE("the want list is leased most asked first and not by falling work") {
  DaemonFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  for (const std::int64_t n : {1024, 65536, 1024}) {
    v1::GetVariantRequest request = exact(n);
    request.set_tune(v1::NEVER);
    daemon.get(request);
  }
  DaemonFixture::eventually([&] {
    return wanted(daemon).total() == 2 && wanted(daemon).wants(0).problem().dims(0).value() == 1024;
  });
  v1::TuneRequest request;
  request.mutable_wanted();
  request.set_detach(true);
  daemon.tune(request);
  CHECK(agent.wait_for_lease().problem().dims(0).value() == 1024);
}

TEST_CASE("who accepts no answer of the bucket has its own problem measured or wanted") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  REQUIRE(daemon.tune(tune_vector_add({4096})).size() >= 1);
  v1::GetVariantRequest request = exact(3000);
  request.set_tune(v1::NEVER);
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
  DaemonFixture::eventually([&] { return wanted(daemon).total() == 1; });
  CHECK(wanted(daemon).wants(0).problem().dims(0).value() == 3000);
  request.set_tune(v1::AUTO);
  request.set_on_miss(v1::WAIT);
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().departures().empty());
  CHECK(wanted(daemon).total() == 0);
}

}  // namespace cubind::test
