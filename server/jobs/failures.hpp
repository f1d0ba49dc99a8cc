// Jobs that have failed, so that misses do not repeat them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "server/jobs/agent_roster.hpp"

namespace cubind {

class KernelLibrary;

/// The latest failure of each key. A failure counts for a pause, as long as the kernel's spec is unchanged.
/// If the job lacked memory, it counts until a GPU of its class offers enough; if a GPU does not report its
/// free memory, for the pause.
class Failures {
 public:
  Failures(KernelLibrary& kernels, const JoinedAgents& agents, const Clock& clock, std::chrono::minutes pause)
      : kernels_(kernels), agents_(agents), clock_(clock), pause_(pause) {}

  /// Notes the end of a job. If it succeeded or was cancelled, the key's failure is removed.
  void note(const JobRow& ended);
  /// The error of the key's failure while it counts. If only this problem did not fit into memory, its bucket
  /// may still be measured.
  std::optional<std::string> find(const Digest& key, bool for_bucket) const;
  /// The memory that the key's latest job needed; 0: it did not lack memory.
  std::uint64_t memory_needed(const Digest& key) const;

 private:
  struct Failure {
    std::string error;
    std::chrono::steady_clock::time_point until;
    std::string kernel;
    std::uint64_t revision = 0;  // of the kernel's spec
    Digest device_class;
    bool for_bucket = false;
    std::uint64_t needs_bytes = 0;  // 0: the job did not lack memory
  };
  /// Null if there is none, or it belongs to another revision of the spec.
  const Failure* latest(const Digest& key) const;
  bool may_fit(const Failure& failure) const;
  /// 0 if the kernel is unknown.
  std::uint64_t revision_of(const std::string& kernel) const;

  KernelLibrary& kernels_;
  const JoinedAgents& agents_;
  const Clock& clock_;
  const std::chrono::minutes pause_;
  std::map<Digest, Failure> failures_;  // by key
};

}  // namespace cubind
