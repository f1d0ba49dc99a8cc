// What one caller may hold, and streams whose caller does not go on.
#include <catch2/catch.hpp>

#include <future>

#include "server/access/caller_limits.hpp"
#include "server/service/context.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr auto kExhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
const std::string kOwner = "owner of the socket";

struct LimitedDaemon : DaemonFixture {
  std::uint64_t held(Held what) { return context().limits.held(kOwner, what); }
  /// The rest of the caller's limit is `rest`.
  CallerLimits::Hold all_but(std::uint64_t rest, Held what) {
    const CallerLimit& limit = kCallerLimits.at(static_cast<std::size_t>(what));
    return context().limits.take(kOwner, what, limit.most - rest);
  }
};

/// An ImportTable that goes on as the test wants.
struct Import {
  explicit Import(DaemonFixture& daemon) : writer(daemon.stub().ImportTable(&context, &reply)) {}
  bool send(const std::string& json) {
    v1::TableChunk chunk;
    chunk.set_json(json);
    return writer->Write(chunk);
  }
  grpc::ClientContext context;
  v1::ImportTableReply reply;
  std::unique_ptr<grpc::ClientWriter<v1::TableChunk>> writer;
};

}  // namespace

TEST_CASE_METHOD(LimitedDaemon, "an upload above the bytes of its caller is refused and leaves nothing") {
  const CallerLimits::Hold most = all_but(10'000, Held::Bytes);
  {
    Import first(*this), second(*this);
    REQUIRE(first.send(std::string(6'000, ' ')));
    eventually([&] { return held(Held::Bytes) > kCallerLimits[1].most - 5'000; });
    second.send(std::string(6'000, ' '));
    const grpc::Status status = second.writer->Finish();
    CHECK(status.error_code() == kExhausted);
    CHECK_THAT(status.error_message(),
               StartsWith("caller " + kOwner) && Contains("bytes in open calls") && Contains("268435456"));
    first.context.TryCancel();
    first.writer->Finish();
  }
  eventually([&] { return held(Held::Bytes) == kCallerLimits[1].most - 10'000; });
}

TEST_CASE_METHOD(LimitedDaemon, "an upload whose caller sends nothing more ends") {
  context().longest_pause = std::chrono::milliseconds(200);
  Import import(*this);
  REQUIRE(import.send("{"));
  const grpc::Status status = import.writer->Finish();
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK_THAT(status.error_message(), Contains("no part came for 200 ms"));
  eventually([&] { return held(Held::Calls) == 0 && held(Held::Bytes) == 0; });
}

TEST_CASE_METHOD(LimitedDaemon, "an upload whose caller goes on slowly does not end") {
  context().longest_pause = std::chrono::milliseconds(2000);
  Import import(*this);
  for (int i = 0; i < 6; ++i) {
    REQUIRE(import.send(" "));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  import.writer->WritesDone();
  CHECK(import.writer->Finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE_METHOD(LimitedDaemon, "an export that is not read ends and is held no longer") {
  Import import(*this);
  REQUIRE(import.send(read_file(source_dir() / "tests" / "golden" / "replay" / "rmsnorm.json")));
  import.writer->WritesDone();
  REQUIRE(import.writer->Finish().ok());
  context().longest_pause = std::chrono::milliseconds(1000);
  grpc::ClientContext call;
  v1::ExportTableRequest request;
  request.set_all_trials(true);
  request.set_include_samples(true);
  request.set_include_replayed(true);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // 64 KiB travel before they are read, and no more
  const auto reader =
      v1::Cubind::NewStub(grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments))
          ->ExportTable(&call, request);
  eventually([&] { return held(Held::Bytes) > 500'000; });
  eventually([&] { return held(Held::Calls) == 0 && held(Held::Bytes) == 0; });
  for (v1::TableChunk chunk; reader->Read(&chunk);) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE_METHOD(LimitedDaemon, "calls and checks and jobs above their limits are refused") {
  {
    const CallerLimits::Hold most = all_but(0, Held::Calls);
    grpc::ClientContext call;
    v1::GetStatusReply reply;
    const grpc::Status status = stub().GetStatus(&call, {}, &reply);
    CHECK(status.error_code() == kExhausted);
    CHECK_THAT(status.error_message(), Contains("4096 open calls"));
  }
  {
    const CallerLimits::Hold most = all_but(0, Held::Checks);
    grpc::ClientContext call;
    v1::CheckKernelReply reply;
    const grpc::Status status = stub().CheckKernel(&call, {}, &reply);
    CHECK(status.error_code() == kExhausted);
    CHECK_THAT(status.error_message(), Contains("16 checks of kernels"));
  }
  const CallerLimits::Hold most = all_but(1, Held::Jobs);
  v1::TuneRequest request = tune_vector_add({64, 4096});
  request.set_detach(true);
  grpc::Status status;
  tune(request, &status);
  CHECK(status.error_code() == kExhausted);
  CHECK_THAT(status.error_message(), Contains("5000 jobs") && Contains("cancel some"));
  CHECK(jobs().size() == 1);
  v1::CancelJobRequest cancel;
  cancel.set_id(jobs().at(0).id());
  grpc::ClientContext call;
  v1::CancelJobReply reply;
  REQUIRE(stub().CancelJob(&call, cancel, &reply).ok());
  CHECK(held(Held::Jobs) == 4999);
}

TEST_CASE_METHOD(LimitedDaemon, "a miss above the compiles of its caller says so") {
  FakeAgent agent(address(), compiling_hello());
  const CallerLimits::Hold most = all_but(0, Held::Compiles);
  v1::GetVariantRequest request = vector_add(4096);
  request.set_tune(v1::NEVER);
  const Got got = get(request);
  CHECK(got.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(got.status.error_message(), Contains("1000 compiles for its misses"));
}

TEST_CASE_METHOD(LimitedDaemon, "an artifact that is read counts in the bytes of its caller") {
  const AutoAgent agent(address(), hello_with(h200_facts()));
  tune(tune_vector_add({4096}));
  v1::GetArtifactRequest request;
  request.set_digest(get(vector_add(4096)).reply.artifact().digest());
  const auto read = [&] {
    grpc::ClientContext call;
    const auto reader = stub().GetArtifact(&call, request);
    for (v1::ArtifactChunk chunk; reader->Read(&chunk);) {
    }
    return reader->Finish();
  };
  eventually([&] { return held(Held::Bytes) == 0; });
  {
    const CallerLimits::Hold most = all_but(request.ByteSizeLong() + 8, Held::Bytes);
    const grpc::Status status = read();
    CHECK(status.error_code() == kExhausted);
    CHECK_THAT(status.error_message(), Contains("bytes in open calls"));
  }
  CHECK(read().ok());
  eventually([&] { return held(Held::Bytes) == 0; });
}

TEST_CASE_METHOD(LimitedDaemon, "answered calls are held no longer") {
  const AutoAgent agent(address(), hello_with(h200_facts()));
  tune(tune_vector_add({4096}));
  for (int i = 0; i < 10; ++i) {
    CHECK(get(vector_add(4096)).status.ok());
  }
  eventually([&] { return held(Held::Calls) == 1; });  // the agent's stream
  CHECK(held(Held::Jobs) + held(Held::Compiles) + held(Held::Checks) == 0);
}

}  // namespace cubind::test
