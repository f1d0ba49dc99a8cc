#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "schemas/agent.pb.h"
#include "tuner/agent/lease/job_stop.hpp"

namespace cubind {

/// The agent's stream to the daemon: the only file that knows gRPC. One object is one connection; when it
/// breaks, the leases that came over it are lost and a new object is made.
///
/// send() and the calls of a lease may be made from any thread; on_message is called from a thread of the
/// stream, one message at a time, and must not wait for an acknowledgement.
class LeaseStream {
 public:
  /// `address`: unix:///PATH, tls://HOST:PORT or HOST:PORT. `token_file`: empty: that of the environment.
  /// Does not wait for the daemon.
  LeaseStream(const std::string& address, const v1::Hello& hello,
              std::function<void(const v1::DaemonMessage&)> on_message,
              const std::filesystem::path& token_file = {});
  /// Sends the hello and begins to hand over messages. Once.
  void start();
  /// Ends the stream and waits until on_message has returned for the last time.
  ~LeaseStream();
  LeaseStream(const LeaseStream&) = delete;
  LeaseStream& operator=(const LeaseStream&) = delete;

  /// False if the stream is broken.
  bool send(const v1::AgentMessage& message);
  /// Sends with a sequence number and returns that: wait_for() it until it returns, or forget() it.
  /// Throws Error(Aborted) if the stream is broken.
  std::uint64_t send_numbered(v1::AgentMessage message);
  /// Returns when the daemon has acknowledged the message. Throws Error(Aborted) where the stream breaks
  /// first, and what `stop` throws when it is requested first, except that a job which is handed back still
  /// waits for acknowledgements for some seconds.
  v1::Ack wait_for(std::uint64_t sequence, const JobStop& stop);
  /// The acknowledgement is no longer awaited.
  void forget(std::uint64_t sequence);

  /// The cubin's bytes, checked against the digest; absent if the daemon does not have them. This and
  /// put_artifact() throw Error(Aborted) if the stream is broken, Error(Unavailable) where the daemon
  /// cannot answer now and Error(FailedPrecondition) with its words where it refuses.
  std::optional<std::string> fetch_cubin(const Digest& digest, std::size_t max_bytes);
  void put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin);

  /// Absent while it is alive; why it broke.
  std::optional<std::string> broken() const;
  /// Whether the daemon has broken it and would do so again: it speaks another protocol, or does not accept
  /// the token.
  bool is_refused() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cubind
