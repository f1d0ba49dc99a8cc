// Thousands of ranks ask at once: one job, one compile a configuration, the same bytes for all.
#include <catch2/catch.hpp>

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <set>
#include <thread>

#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kRanks = 256;

// The reply's bytes as they came over the wire; empty where the call failed.
std::string ask_raw(const std::string& address, const std::string& request) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own, as another process has
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 2 * kPatience);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer body(&slice, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/cubind.v1.Cubind/GetVariant", body, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice whole;
  if (!status.ok() || !reply.DumpToSingleSlice(&whole).ok()) {
    return "";
  }
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

std::vector<v1::Job> jobs_of_kind(const Connection& connection, v1::Job::Kind kind) {
  std::vector<v1::Job> result;
  const auto reply = connection.list_jobs(true, kPatience);
  for (const v1::Job& job : reply.jobs()) {
    if (job.kind() == kind) {
      result.push_back(job);
    }
  }
  return result;
}

TEST_CASE(
    "256 waiters for one cold key cause one job and one NVRTC call a configuration and get the same bytes") {
  TinyDaemon daemon({.hold = true});
  const Connection connection = daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.set_on_miss(v1::WAIT);
  const std::string bytes = request.SerializeAsString();

  std::vector<std::string> replies(kRanks);
  std::vector<std::thread> ranks;
  for (std::size_t i = 0; i < kRanks; ++i) {
    ranks.emplace_back([&, i] { replies[i] = ask_raw(daemon->address(), bytes); });
  }
  const bool all_wait = eventually([&] {
    const auto jobs = jobs_of_kind(connection, v1::Job::TUNE);
    return jobs.size() == 1 && jobs[0].waiters() == kRanks;
  });
  daemon.let_go();
  for (std::thread& rank : ranks) {
    rank.join();
  }

  CHECK(all_wait);
  const auto jobs = jobs_of_kind(connection, v1::Job::TUNE);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].state() == v1::Job::DONE);
  CHECK(jobs[0].configurations() == kTinyConfigurations);
  CHECK(jobs[0].nvrtc_calls() == kTinyConfigurations);
  CHECK(jobs_of_kind(connection, v1::Job::COMPILE_WINNER).empty());
  v1::GetVariantReply reply;
  REQUIRE(reply.ParseFromString(replies[0]));
  CHECK(reply.provenance().departures().empty());
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
  CHECK(std::set<std::string>(replies.begin(), replies.end()).size() == 1);
}

}  // namespace
}  // namespace cubind::test
