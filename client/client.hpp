// The client of a cubind daemon, for training and inference jobs.
//
//   cubind::Client client;                       // CUBIND_ADDRESS, else the user's socket
//   cubind::Answer answer = client.get({.kernel = "rmsnorm_forward", .problem = cubind::parse_problem("N=4096,D=4096,T=bf16")});
//   cubind::LoadedKernel kernel(answer);         // client/kernel.hpp
//   kernel.launch(cubind::Arguments().buffer("x", x).buffer("w", w).buffer("y", y).scalar("eps", 1e-6), stream);
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/query.hpp"

namespace cubind {

namespace v1 {
class GetVariantRequest;
}

class Connection;

struct ClientOptions {
  std::string address;  // "unix:///run/cubind/cubind.sock" or "host:port"; empty: CUBIND_ADDRESS, else the default socket
  std::chrono::milliseconds deadline{30'000};
  std::size_t cached_answers = 4096;  // kept for their rules; the least recently used goes first
};

/// Safe on many threads. Holds one connection, made when it is first needed.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// A problem in the bucket of an earlier answer is answered from its rule, with no call. Errors keep the daemon's code:
  /// NotFound, InvalidArgument with the field path, FailedPrecondition (no cubin that the driver loads), Unavailable (no
  /// daemon: the message says how to start one), DeadlineExceeded.
  Answer get(const Query& query);

  /// Calls made so far: what the rules have saved is visible here.
  std::uint64_t calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
