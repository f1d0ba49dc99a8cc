// Ends connections that send more calls than the daemon has allowed them: gRPC 1.51 keeps to
// GRPC_ARG_MAX_CONCURRENT_STREAMS only while the other end has acknowledged it and resets no call, and the
// thread that reads such a connection does nothing else while more comes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace cubind {

/// Looks at the connections whenever many calls have begun, from a thread of its own. Ends those of TCP: a
/// connection of the Unix socket has no name of its own, and its users are trusted.
class FloodWatch {
 public:
  /// Ends a connection with half as many calls again (those that its client has reset count until they have
  /// ended here too), and one whose client has reset more within a second.
  explicit FloodWatch(int most_calls);
  ~FloodWatch();
  FloodWatch(const FloodWatch&) = delete;
  FloodWatch& operator=(const FloodWatch&) = delete;

  /// Before the server is built. This outlives the server.
  void add_to(grpc::ServerBuilder& builder);

 private:
  class Counter;
  using Resets = std::map<std::int64_t, std::int64_t>;  // by connection, since it began

  void call_begins();
  void run();
  /// The number of connections ended.
  int end_floods();
  std::set<std::string> flooding_peers();
  bool floods(std::int64_t connection);

  const std::int64_t most_calls_;
  std::atomic<std::int64_t> begun_{0};
  std::atomic<std::int64_t> alarm_;  // so many begun calls wake the thread
  std::atomic<bool> awake_{false};
  // Used on the thread alone:
  std::chrono::steady_clock::time_point second_{};
  Resets at_second_, seen_;  // when the second began, and now
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
