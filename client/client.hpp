// The client of a cubind daemon, for training and inference jobs.
//
//   cubind::Client client;                       // CUBIND_ADDRESS, else the user's socket
//   cubind::Answer answer = client.get(
//       {.kernel = "rmsnorm_forward", .problem = cubind::parse_problem("N=4096,D=4096,T=bf16")});
//   cubind::LoadedKernel kernel(answer);         // client/kernel.hpp
//   kernel.launch(cubind::Arguments().buffer("x", x).buffer("w", w).buffer("y", y).scalar("eps", 1e-6),
//   stream);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/query.hpp"

namespace cubind {

struct ClientOptions {
  /// "unix:///run/cubind/cubind.sock" or "host:port"; empty: CUBIND_ADDRESS, else the default socket
  std::string address = {};
  std::chrono::milliseconds deadline{30'000};
  std::size_t cached_answers = 4096;  // kept for their rules; the least recently used goes first
  /// The longest time for which an answer that a tuning job may improve answers for its bucket.
  std::chrono::milliseconds unsettled_for{10'000};
  /// Trust file: each answer must carry a record's fingerprint that one of its keys has signed. Empty:
  /// CUBIND_TRUST, else answers need no signature.
  std::string trust = {};
};

/// Safe on many threads. Holds one connection, made when it is first needed.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// An earlier answer's rule answers the other problems of its bucket, with no call: every rank and every
  /// step gets the same answer as long as the client lives. If an answer departed from the question by more
  /// than its bucket and has a job behind it, the client asks again after `unsettled_for`. Errors keep the
  /// daemon's code: NotFound, InvalidArgument with the field path, FailedPrecondition (no driver, or no cubin
  /// that it loads), Unavailable (no daemon: the message says how to start one; or no artifact in time, with
  /// the job's id), DeadlineExceeded, DataLoss (the answer is not for the question, or its bytes are
  /// damaged). With a trust file also PermissionDenied (not signed by a trusted key) and FailedPrecondition
  /// (the bundle has expired, or is older than an earlier one).
  Answer get(const Query& query);

  /// Calls made so far: this shows the calls that the rules saved.
  std::uint64_t calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
