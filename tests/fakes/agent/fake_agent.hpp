// An agent whose every move the test makes: the real stream, none of the work.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fakes/agent/fake_work.hpp"

namespace cubind::test {

inline constexpr std::chrono::seconds kPatience{20};

/// Used from one thread, but for AutoAgent's own. Every wait ends after kPatience with an exception.
class FakeAgent {
 public:
  /// Says hello and waits for the welcome.
  FakeAgent(const std::string& address, const v1::Hello& hello);
  /// Ends the stream.
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  const v1::Welcome& welcome() const;

  v1::LeaseGrant wait_for_lease();
  /// Absent: none came within the time.
  std::optional<v1::LeaseGrant> try_lease(std::chrono::milliseconds time);
  v1::EndLease wait_for_end_of_lease();
  v1::Awaited wait_for_awaited();
  void wait_for_drain();
  v1::CheckOrder wait_for_check();

  void send_progress(const v1::LeaseGrant& lease, const std::string& stage,
                     v1::Job::State state = v1::Job::RUNNING);
  /// True: acknowledged. False: the lease was ended instead.
  bool send_batch(const v1::LeaseGrant& lease, const v1::Batch& batch);
  bool send_result(const v1::LeaseGrant& lease, const v1::JobResult& result);
  /// The job has failed, with this error.
  bool fail(const v1::LeaseGrant& lease, const std::string& error = "");
  void send_devices(const v1::OfferedDevices& devices);
  void send_leaving();
  void send_check(const v1::CheckResult& result);
  /// Uploads a cubin in chunks; the status' message, empty for OK.
  std::string put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin);

  /// Artifacts, trials, blocks of `configurations` and the result: the default wins. False where the lease
  /// was ended.
  bool tune(const v1::LeaseGrant& lease, std::size_t configurations = 3);
  /// What a COMPILE_WINNER lease asks for, with toolchain_for() the lease unless one is named.
  bool compile(const v1::LeaseGrant& lease, std::string_view toolchain = "");

  /// No more heartbeats, as if it were stopped.
  void fall_silent();
  /// How the stream ended, once it has: "" for OK.
  std::string wait_for_end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Does whatever it is asked, on a thread of its own, until it is destroyed.
class AutoAgent {
 public:
  AutoAgent(const std::string& address, const v1::Hello& hello);
  ~AutoAgent();

  std::size_t tuned() const;
  std::size_t compiled() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cubind::test
