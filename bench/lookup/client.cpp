// Keeps a server busy with GetVariant: a fixed number of calls is always under way, each for a request drawn
// at random. Prints one line of JSON. usage: lookup_client ADDRESS REQUESTS_FILE --check | SECONDS
// CALLS_UNDER_WAY SEED
//
// --check asks each of them once, in order, and looks at the answer: the
// problem that was asked, answered exactly, and the cubin's bytes unless the request says that they are not
// needed. TLS and a token as for every client: tls://HOST:PORT, CUBIND_CA_FILE, CUBIND_TOKEN_FILE.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <vector>

#include "bench/lookup/requests.hpp"
#include "connect/channel.hpp"
#include "schemas/cubind.grpc.pb.h"

namespace cubind::bench {
namespace {

using Clock = std::chrono::steady_clock;
using v1::GetVariantReply;
using v1::GetVariantRequest;

constexpr char kMethod[] = "/cubind.v1.Cubind/GetVariant";
constexpr std::size_t kChannels = 8;

std::vector<std::shared_ptr<grpc::Channel>> connect(const std::string& address) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (std::size_t i = 0; i < kChannels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("lookup.connection",
                     static_cast<int>(i));  // channels of equal arguments share a connection
    channels.push_back(open_channel(address, arguments));
  }
  return channels;
}

const char* fault_of(const GetVariantRequest& request, const GetVariantReply& reply) {
  if (reply.problem().SerializeAsString() != request.problem().SerializeAsString()) {
    return "answers another problem";
  }
  if (reply.provenance().departures_size() != 0) {
    return "is not exact";
  }
  const bool wanted = request.have_artifacts().empty();
  if (wanted == reply.artifact().zstd_cubin().empty()) {
    return wanted ? "has no cubin" : "has a cubin that is not needed";
  }
  return reply.artifact().digest().size() == 32 ? nullptr : "names no cubin";
}

int check(const std::string& address, const std::vector<std::string>& requests) {
  const auto stub = v1::Cubind::NewStub(connect(address).front());
  std::size_t bytes = 0;
  const auto begin = Clock::now();
  for (const std::string& text : requests) {
    GetVariantRequest request;
    request.ParseFromString(text);
    GetVariantReply reply;
    grpc::ClientContext call;
    const grpc::Status status = stub->GetVariant(&call, request, &reply);
    const std::string error = status.error_message();
    const char* fault = status.ok() ? fault_of(request, reply) : error.c_str();
    if (fault) {
      std::fprintf(stderr, "%s: the reply %s\n", request.problem().ShortDebugString().c_str(), fault);
      return 1;
    }
    bytes += reply.ByteSizeLong();
  }
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  std::printf("{\"calls\": %zu, \"mean_reply_bytes\": %zu, \"mean_request_bytes\": %zu, \"seconds\": %.3f}\n",
              requests.size(), bytes / requests.size(), requests.front().size(), seconds.count());
  return 0;
}

/// One call after the other on its channel until the time is over.
class Caller {
 public:
  Caller(std::shared_ptr<grpc::Channel> channel, const std::vector<grpc::ByteBuffer>& requests, unsigned seed,
         Clock::time_point end)
      : stub_(std::move(channel)), requests_(requests), random_(seed), end_(end) {}

  void call() {
    context_ = std::make_unique<grpc::ClientContext>();
    const auto& request =
        requests_[std::uniform_int_distribution<std::size_t>(0, requests_.size() - 1)(random_)];
    begin_ = Clock::now();
    stub_.UnaryCall(context_.get(), kMethod, grpc::StubOptions(), &request, &reply_,
                    [this](const grpc::Status& status) { returned(status); });
  }

  std::vector<float> latencies_us;
  std::size_t reply_bytes = 0, failures = 0;
  std::binary_semaphore ended{0};

 private:
  void returned(const grpc::Status& status) {
    const auto now = Clock::now();
    failures += status.ok() ? 0 : 1;
    reply_bytes += reply_.Length();
    latencies_us.push_back(std::chrono::duration<float, std::micro>(now - begin_).count());
    if (now < end_) {
      call();
    } else {
      ended.release();
    }
  }

  grpc::GenericStub stub_;
  const std::vector<grpc::ByteBuffer>& requests_;
  std::mt19937_64 random_;
  const Clock::time_point end_;
  std::unique_ptr<grpc::ClientContext> context_;
  grpc::ByteBuffer reply_;
  Clock::time_point begin_;
};

int load(const std::string& address, const std::vector<std::string>& texts, double seconds,
         unsigned under_way, unsigned seed) {
  std::vector<grpc::ByteBuffer> requests;
  for (const std::string& text : texts) {
    const grpc::Slice slice(text);
    requests.emplace_back(&slice, 1);
  }
  const auto channels = connect(address);
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::unique_ptr<Caller>> callers;
  for (unsigned i = 0; i < under_way; ++i) {
    callers.push_back(std::make_unique<Caller>(channels[i % kChannels], requests, seed * 1000 + i, end));
  }
  for (const auto& caller : callers) {
    caller->call();
  }
  std::vector<float> latencies;
  std::size_t bytes = 0, failures = 0;
  for (const auto& caller : callers) {
    caller->ended.acquire();
    latencies.insert(latencies.end(), caller->latencies_us.begin(), caller->latencies_us.end());
    bytes += caller->reply_bytes;
    failures += caller->failures;
  }
  const std::chrono::duration<double> elapsed = Clock::now() - begin;
  std::ranges::sort(latencies);
  const auto at = [&](double share) {
    return latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))];
  };
  std::printf(
      "{\"calls\": %zu, \"failures\": %zu, \"calls_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
      "\"mean_reply_bytes\": %zu}\n",
      latencies.size(), failures, static_cast<double>(latencies.size()) / elapsed.count(), at(0.5), at(0.99),
      bytes / latencies.size());
  return failures == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[2] == "--check") {
    return check(arguments[0], read_requests(arguments[1]));
  }
  if (arguments.size() == 5) {
    return load(arguments[0], read_requests(arguments[1]), std::atof(argv[3]),
                static_cast<unsigned>(std::atoi(argv[4])), static_cast<unsigned>(std::atoi(argv[5])));
  }
  std::fputs("usage: lookup_client ADDRESS REQUESTS_FILE --check | SECONDS CALLS_UNDER_WAY SEED\n", stderr);
  return 2;
}

}  // namespace
}  // namespace cubind::bench

int main(int argc, char** argv) { return cubind::bench::run(argc, argv); }
