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
  std::size_t cached_answers = 4096;  // kept for their rules; the least recently used is evicted first
  /// How long an answer that a tuning job may improve covers its bucket.
  std::chrono::milliseconds unsettled_for{10'000};
  /// Trust file: each answer must have a fingerprint of its record, signed by one of the file's keys. Empty:
  /// the file of CUBIND_TRUST, else answers need no signature.
  std::string trust = {};
};

/// Safe on many threads. Holds one connection, which the first call opens.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Returns the best variant for the query. The rule of an earlier answer covers the other problems of its
  /// bucket without a call, so that every rank and step gets the same answer as long as the client lives. If
  /// an answer departs from the question by more than its bucket and a job may improve it, the client asks
  /// again after `unsettled_for`.
  ///
  /// Errors keep the daemon's code: NotFound; InvalidArgument with the field's path; FailedPrecondition (no
  /// driver, or no cubin that it loads); Unavailable (no daemon: the message says how to start one; or no
  /// artifact in time, with the job's id); DeadlineExceeded; DataLoss (the answer is not for the question, or
  /// its bytes are damaged). With a trust file also PermissionDenied (not signed by a trusted key) and
  /// FailedPrecondition (the bundle has expired, or is older than an earlier one).
  Answer get(const Query& query);

  /// The number of calls made so far, which shows how many the rules have saved.
  std::uint64_t calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
