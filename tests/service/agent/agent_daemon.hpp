// The daemon's side of an agent's stream, in this process: keeps every message, acknowledges what wants it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "schemas/agent.pb.h"

namespace cubind::test {

class AgentDaemon {
 public:
  AgentDaemon();
  ~AgentDaemon();

  std::string address() const;
  std::string tcp_address() const { return "127.0.0.1:" + std::to_string(port_); }
  void send(const v1::DaemonMessage& message);
  /// Closes the stream, as a daemon that dies.
  void hang_up();
  /// Ends, so that the address is free, and starts again.
  void leave();
  void come_back();
  /// Ends the next stream at its hello with FAILED_PRECONDITION and this text.
  void refuse_next(const std::string& reason);

  /// The first message that fits, waiting for it; absent after `limit`. Messages are not taken out.
  std::optional<v1::AgentMessage> find(const std::function<bool(const v1::AgentMessage&)>& fits,
                                       std::chrono::seconds limit = std::chrono::seconds(60));
  std::optional<v1::AgentMessage> hello() {
    return find([](const auto& message) { return message.has_hello(); });
  }
  std::optional<v1::AgentMessage> result(std::chrono::seconds limit = std::chrono::seconds(60)) {
    return find([](const auto& message) { return message.has_result(); }, limit);
  }
  std::vector<v1::AgentMessage> messages() const;
  void forget();

  /// Acknowledgements are held back while this is set.
  std::atomic<bool> silent{false};
  /// Answers every GetArtifact with RESOURCE_EXHAUSTED and this text; set it before the first call.
  std::string artifact_refusal;

 private:
  struct Server;
  TempDir folder_;
  int port_ = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace cubind::test
