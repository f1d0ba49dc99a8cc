// What was answered before is answered again from memory.
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "server/service/known_answer.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace cubind::test {
namespace {

grpc::Status ask_in_bytes(const std::string& address, const std::string& request) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext call;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer message(&slice, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&call, "/cubind.v1.Cubind/GetVariant", grpc::StubOptions(), &message, &reply,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  return ended.get_future().get();
}

TEST_CASE("a hit that is asked for again gets the same bytes and counts as a hit") {
  TunedDaemon daemon;
  const Got first = daemon.get(vector_add(4096));
  const auto hits = daemon.status().hits();
  const Got again = daemon.get(vector_add(4096));
  REQUIRE(again.status.ok());
  CHECK_FALSE(again.reply.artifact().zstd_cubin().empty());
  CHECK(again.reply.SerializeAsString() == first.reply.SerializeAsString());
  CHECK(daemon.status().hits() == hits + 1);
}

TEST_CASE("an answer that was given before gives way to a new record") {
  TunedDaemon daemon;
  REQUIRE(daemon.get(vector_add(3000)).reply.provenance().measured_problem().dims(0).value() == 4096);
  REQUIRE(daemon.get(vector_add(3000)).status.ok());
  daemon.tune(tune_vector_add({3000}));
  CHECK(daemon.get(vector_add(3000)).reply.provenance().departures().empty());
}

TEST_CASE("who has the cubin already is not sent the bytes that others are sent") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  const Got bytes = daemon.get(request);
  request.add_have_artifacts(bytes.reply.artifact().digest());
  for (int i = 0; i < 2; ++i) {
    const auto known = daemon.get(request).reply.artifact();
    CHECK(known.zstd_cubin().empty());
    CHECK(known.digest() == bytes.reply.artifact().digest());
    CHECK(daemon.get(vector_add(4096)).reply.artifact().zstd_cubin() == bytes.reply.artifact().zstd_cubin());
  }
}

struct NoCubinInRam : TunedDaemon {
  NoCubinInRam() {
    config().cache_bytes = 0;
    restart();
  }
};

TEST_CASE("a hit whose cubin is no longer in RAM reads the cubin and looks nothing up") {
  NoCubinInRam daemon;
  const std::string request = vector_add(4096).SerializeAsString();
  grpc::ByteBuffer reply;
  CHECK_FALSE(answer_again(daemon.context(), request, reply));
  const Got first = daemon.get(vector_add(4096));
  REQUIRE(first.status.ok());
  const auto hits = daemon.status().hits();
  REQUIRE(answer_again(daemon.context(), request, reply));
  CHECK(daemon.status().hits() == hits + 1);
  grpc::Slice bytes;
  REQUIRE(reply.DumpToSingleSlice(&bytes).ok());
  v1::GetVariantReply again;
  REQUIRE(again.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  CHECK(again.SerializeAsString() == first.reply.SerializeAsString());
}

TEST_CASE("a hit whose cubin can no longer be read is looked up again") {
  NoCubinInRam daemon;
  const std::string request = vector_add(4096).SerializeAsString();
  REQUIRE(daemon.get(vector_add(4096)).status.ok());
  daemon.damage_cubins();
  // The call that was answered holds its cubin for a moment after its caller has the reply.
  const auto is_known = [&] {
    grpc::ByteBuffer reply;
    return answer_again(daemon.context(), request, reply);
  };
  CHECK(eventually([&] { return !is_known(); }));
}

TEST_CASE("a request that is no message is refused by name") {
  DaemonFixture daemon;
  const grpc::Status status = ask_in_bytes(daemon.address(), "\xff\xff\xff");
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().find("GetVariantRequest") != std::string::npos);
}

}  // namespace
}  // namespace cubind::test
