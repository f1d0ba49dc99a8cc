// Jobs that have failed, so that misses do not repeat them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "server/jobs/joined_agents.hpp"

namespace cubind {

class KernelLibrary;

/// The latest failure of each key. It holds while the kernel's spec is the same, and for a pause; where the
/// job lacked memory, until a GPU of its class offers enough of it (for the pause, where a GPU does not tell
/// what is free).
class Failures {
 public:
  Failures(KernelLibrary& kernels, const JoinedAgents& agents, const Clock& clock, std::chrono::minutes pause)
      : kernels_(kernels), agents_(agents), clock_(clock), pause_(pause) {}

  /// A job has ended: if it succeeded or was cancelled, its key has not failed.
  void note(const JobRow& ended);
  /// The error of the key's failure while it holds. That exactly the problem did not fit says nothing to who
  /// asks for its bucket.
  std::optional<std::string> find(const Digest& key, bool for_bucket) const;
  /// By the key's latest job; 0: it did not lack memory.
  std::uint64_t memory_needed(const Digest& key) const;

 private:
  struct Failure {
    std::string error;
    std::chrono::steady_clock::time_point until;
    std::string kernel;
    std::uint64_t revision = 0;  // of the kernel's spec
    Digest device_class;
    bool for_bucket = false;
    std::uint64_t needs_bytes = 0;  // 0: memory was not short
  };
  /// Null: none, or of another spec.
  const Failure* latest(const Digest& key) const;
  bool may_fit(const Failure& failure) const;
  /// 0: the kernel is not known.
  std::uint64_t revision_of(const std::string& kernel) const;

  KernelLibrary& kernels_;
  const JoinedAgents& agents_;
  const Clock& clock_;
  const std::chrono::minutes pause_;
  std::map<Digest, Failure> failures_;  // by key
};

}  // namespace cubind
