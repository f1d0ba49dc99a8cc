#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "schemas/agent.pb.h"
#include "schemas/worker.pb.h"
#include "tuner/agent/compile/compiler.hpp"
#include "tuner/agent/compile/kernel_builds.hpp"
#include "tuner/agent/lease/job_stop.hpp"

namespace cubind {

/// Compiles what a job will ask first: of the job that comes next on a GPU, or of one that was granted and
/// opens its GPU. The compiler has the results when the job asks. Works in a thread of its own until it is
/// done or destroyed.
///
/// A job that no caller waits for is compiled in the background, whatever the priority.
class AheadCompiles {
 public:
  struct Urgency {
    CompilePriority priority = CompilePriority::Ahead;  // if a caller waits for the job
    std::size_t window = 32;  // so many are under way; a request with CUDA's 16-bit headers has 1.6 MB
  };
  /// `device`: facts and driver. Both references must outlive this object.
  AheadCompiles(Compiler& compiles, KernelBuilds& builds, v1::LeaseGrant job, v1::DeviceInfo device,
                Urgency urgency);
  ~AheadCompiles();
  AheadCompiles(const AheadCompiles&) = delete;
  AheadCompiles& operator=(const AheadCompiles&) = delete;

  /// Returns when nothing is left to compile. For tests.
  void wait() { done_.wait(false); }

 private:
  void work();
  void compile_all();
  void compile(const Digest& key, const std::function<CompileInput()>& input);
  void wait_for_first();

  Compiler& compiles_;
  KernelBuilds& builds_;
  const v1::LeaseGrant job_;
  const v1::DeviceInfo device_;
  const Urgency urgency_;
  JobStop stop_;
  std::deque<Digest> under_way_;  // of the thread
  std::atomic<bool> done_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cubind
