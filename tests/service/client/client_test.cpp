#include "client/client.hpp"

#include <grpcpp/support/status.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "tests/fakes/fake_daemon.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::FakeDaemon;
using test::query;

Problem canonical(const v1::Problem& problem) {
  Problem asked = problem_from_wire(problem, "problem");
  return {{{"N", asked.dim("N").value()}, {"D", asked.dim("D").value()}}, asked.types, {}, ""};
}

// Answers every question about `scale` with the same cubin.
void serve_sample(FakeDaemon& daemon, const std::string& cubin = "cubin") {
  daemon.scripts.get_variant = [cubin](const v1::GetVariantRequest& request) {
    return test::sample_reply(canonical(request.problem()), cubin);
  };
}

Client connect(const FakeDaemon& daemon) { return Client({.address = daemon.address()}); }

// What zstd cannot make smaller.
std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  Random random(1);
  for (char& byte : bytes) {
    byte = static_cast<char>(random.below(256));
  }
  return bytes;
}

template <typename Action>
Error error_of(const Action& action) {
  return test::error_of(action).value();
}

}  // namespace

TEST_CASE("the rule of a bucket is answered by the client with no call") {
  FakeDaemon daemon;
  serve_sample(daemon);
  Client client = connect(daemon);
  CHECK(client.get(query("N=1024,D=4096,T=f16")).match().exact());
  const Answer other = client.get(query("D=4096,T=torch.float16,N=1000"));
  CHECK(client.calls() == 1);
  CHECK(to_string(other.match()) == "bucket");
  CHECK(other.plan().launches[1].grid.x == 1000);
}

TEST_CASE("a record of its own or a violated constraint or another bucket is asked of the daemon") {
  FakeDaemon daemon;
  serve_sample(daemon);
  Client client = connect(daemon);
  client.get(query("N=1024,D=4096,T=f16"));
  client.get(query("N=512,D=4096,T=f16"));
  CHECK(client.calls() == 2);
  CHECK_THROWS(client.get(query("N=300,D=4096,T=f16")));
  CHECK(client.calls() == 3);
  client.get(query("N=2048,D=4096,T=f16"));
  CHECK(client.calls() == 4);
  client.get(query("N=1024,D=4096,T=bf16"));
  CHECK(client.calls() == 5);
}

TEST_CASE("a caller who accepts exact answers alone gets none by the rule of a bucket") {
  FakeDaemon daemon;
  serve_sample(daemon);
  Client client = connect(daemon);
  Query asked = query("N=1024,D=4096,T=f16");
  asked.accept = "exact";
  client.get(asked);
  asked.problem = parse_problem("N=1000,D=4096,T=f16");
  client.get(asked);
  CHECK(client.calls() == 2);
}

TEST_CASE("an answer with a job behind it is asked again after a while") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest& request) {
    v1::GetVariantReply reply = test::sample_reply(canonical(request.problem()), "cubin");
    reply.set_job_id("j1");
    reply.mutable_provenance()->add_departures(v1::DEFAULT_CONFIGURATION);
    return reply;
  };
  Client client({.address = daemon.address(), .unsettled_for = std::chrono::milliseconds(0)});
  client.get(query("N=1024,D=4096,T=f16"));
  client.get(query("N=1024,D=4096,T=f16"));
  CHECK(client.calls() == 2);
}

TEST_CASE("the least recently used answer goes first") {
  FakeDaemon daemon;
  serve_sample(daemon);
  Client client({.address = daemon.address(), .cached_answers = 2});
  client.get(query("N=2000,D=4096,T=f16"));
  client.get(query("N=3000,D=4096,T=f16"));
  client.get(query("N=2000,D=4096,T=f16"));
  client.get(query("N=4000,D=4096,T=f16"));
  CHECK(client.calls() == 3);
  client.get(query("N=2000,D=4096,T=f16"));
  CHECK(client.calls() == 3);
  client.get(query("N=3000,D=4096,T=f16"));
  CHECK(client.calls() == 4);
}

TEST_CASE("a cubin above 3 MiB is fetched by chunks") {
  const std::string cubin = random_bytes(5 << 20);
  FakeDaemon daemon;
  daemon.scripts.get_variant = [&](const v1::GetVariantRequest& request) {
    v1::GetVariantReply reply = test::sample_reply(canonical(request.problem()), cubin);
    reply.mutable_artifact()->clear_zstd_cubin();
    return reply;
  };
  daemon.scripts.get_artifact = [&](const std::string&) { return zstd_compress(cubin); };
  Client client = connect(daemon);
  CHECK(client.get(query("N=1024,D=4096,T=f16")).cubin() == cubin);
  CHECK(daemon.artifact_chunks() == 6);
}

TEST_CASE("bytes that the client holds are not sent again") {
  FakeDaemon daemon;
  std::vector<std::string> held;
  daemon.scripts.get_variant = [&](const v1::GetVariantRequest& request) {
    v1::GetVariantReply reply = test::sample_reply(canonical(request.problem()), "cubin");
    if (request.have_artifacts_size() == 1) {
      held.push_back(request.have_artifacts(0));
      reply.mutable_artifact()->clear_zstd_cubin();
    }
    return reply;
  };
  Client client = connect(daemon);
  client.get(query("N=1024,D=4096,T=f16"));
  CHECK(client.get(query("N=2048,D=4096,T=f16")).cubin() == "cubin");
  CHECK(held == std::vector<std::string>{std::string(Digest::of("cubin").view())});
  CHECK(client.calls() == 2);
}

TEST_CASE("a digest mismatch is refused") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest& request) {
    v1::GetVariantReply reply = test::sample_reply(canonical(request.problem()), "cubin");
    reply.mutable_artifact()->set_zstd_cubin(zstd_compress("cubiN"));
    return reply;
  };
  Client client = connect(daemon);
  const Error error = error_of([&] { client.get(query("N=1024,D=4096,T=f16")); });
  CHECK(error.code() == ErrorCode::DataLoss);
  CHECK_THAT(error.what(), Catch::Contains("digest"));
}

TEST_CASE("an answer to another question is refused") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest&) {
    return test::sample_reply({{{"N", 99}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""}, "cubin");
  };
  Client client = connect(daemon);
  const Error error = error_of([&] { client.get(query("N=1024,D=4096,T=f16")); });
  CHECK(error.code() == ErrorCode::DataLoss);
  CHECK_THAT(error.what(), Catch::Contains("N=1024,D=4096,T=f16") && Catch::Contains("N=99"));
}

TEST_CASE("an answer beyond what the caller accepts is refused") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest& request) {
    v1::GetVariantReply reply = test::sample_reply(canonical(request.problem()), "cubin");
    reply.mutable_provenance()->add_departures(v1::OTHER_DEVICE);
    return reply;
  };
  Client client = connect(daemon);
  Query asked = query("N=1024,D=4096,T=f16");
  asked.accept = "bucket";
  CHECK(error_of([&] { client.get(asked); }).code() == ErrorCode::DataLoss);
}

TEST_CASE("the daemon's code and message come through") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest&) -> v1::GetVariantReply {
    throw Error(ErrorCode::NotFound, "kernel", "there is no \"scale\", did you mean \"rmsnorm_forward\"?");
  };
  Client client = connect(daemon);
  const Error error = error_of([&] { client.get(query("N=1024,D=4096,T=f16")); });
  CHECK(error.code() == ErrorCode::NotFound);
  CHECK_THAT(error.what(), Catch::Contains("did you mean"));
}

TEST_CASE("without a GPU the error asks for a label and for no option of a command") {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  FakeDaemon daemon;
  serve_sample(daemon);
  Client client = connect(daemon);
  Query asked = query("N=1024,D=4096,T=f16");
  asked.device = CurrentGpu{};
  const Error error = error_of([&] { client.get(asked); });
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  CHECK_THAT(error.what(), Catch::StartsWith("device: ") &&
                               Catch::Contains("by its label, such as \"nvidia-h200\"") &&
                               !Catch::Contains("--"));
  CHECK(client.calls() == 0);
}

TEST_CASE("without a GPU an unknown kernel is the first error") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest& request) -> v1::GetVariantReply {
    throw Error(ErrorCode::NotFound, "kernel", "there is no \"" + request.kernel() + "\"");
  };
  Client client = connect(daemon);
  Query asked = query("N=1024,D=4096,T=f16");
  asked.device = CurrentGpu{};
  CHECK_THAT(error_of([&] { client.get(asked); }).what(), Catch::Contains("there is no \"scale\""));
}

// tests/service/python/client/addresses_test.py asks the same of the Python client.
constexpr const char* kWordsOfBothSides[] = {
    "failed to connect to all addresses; last error: UNKNOWN: unix:/run/c.sock: No such file or directory",
    "store: PostgreSQL: connection to server at \"db\" failed: Connection refused",
    "kernel handshake: no candidate for N=1 on h100 has a compiled artifact yet",
    "problem.dims.N: is 0, must be positive",
    "Deadline Exceeded",
    "Socket closed",
    ""};

TEST_CASE("a status with the daemon's mark is its word and one without it is of the connection") {
  FakeDaemon daemon;
  Client client = connect(daemon);
  for (int code = 1; code <= 16; ++code) {
    for (const std::string words : kWordsOfBothSides) {
      daemon.scripts.get_variant = [=](const v1::GetVariantRequest&) -> v1::GetVariantReply {
        throw grpc::Status(static_cast<grpc::StatusCode>(code), words);
      };
      CAPTURE(code, words);
      daemon.scripts.marks = true;
      const Error told = error_of([&] { client.get(query("N=1,D=1,T=f16")); });
      CHECK(told.where().empty());
      CHECK(told.cause() == words);
      daemon.scripts.marks = false;
      const Error lost = error_of([&] { client.get(query("N=1,D=1,T=f16")); });
      CHECK(lost.where() == daemon.address());
      CHECK(lost.code() == told.code());
      const bool has_no_socket = code == 14 && words.find("No such file") != std::string::npos;
      CHECK_THAT(lost.cause(), Catch::Contains(code == 4       ? "no answer in time"
                                               : has_no_socket ? "there is no such socket"
                                                               : "(" + words + ")"));
      CHECK(lost.cause().starts_with("no daemon answers there") == (code == 14));
    }
  }
}

TEST_CASE("what a daemon says hides and reorders nothing") {
  FakeDaemon daemon;
  daemon.scripts.get_variant = [](const v1::GetVariantRequest&) -> v1::GetVariantReply {
    throw grpc::Status(grpc::StatusCode::NOT_FOUND, "no \u202ekernel");
  };
  Client client = connect(daemon);
  CHECK(error_of([&] { client.get(query("N=1,D=1,T=f16")); }).what() == std::string("no \\u202ekernel"));
}

}  // namespace cubind
