#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "schemas/agent.pb.h"
#include "schemas/worker.pb.h"
#include "tuner/agent/compile_cache.hpp"
#include "tuner/agent/job_stop.hpp"
#include "tuner/agent/kernel_builds.hpp"

namespace cubind {

/// Compiles what the job that comes next on a GPU will ask first, while compilers have nothing else to do.
/// The results are in the cache when the job begins. Works in a thread of its own until it is done or
/// destroyed.
///
/// A job that nobody waits for is compiled in the background also where it was granted and waits for its GPU.
class AheadCompiles {
 public:
  /// `device`: facts and driver. Both references must outlive this object.
  AheadCompiles(CompileCache& compiles, KernelBuilds& builds, v1::LeaseGrant next, v1::DeviceInfo device);
  ~AheadCompiles();
  AheadCompiles(const AheadCompiles&) = delete;
  AheadCompiles& operator=(const AheadCompiles&) = delete;

  /// Returns when nothing is left to compile. For tests.
  void wait() { done_.wait(false); }

 private:
  void work();
  void compile_all();
  void compile(const Digest& key, const std::function<v1::CompileRequest()>& request);
  void wait_for_first();

  CompileCache& compiles_;
  KernelBuilds& builds_;
  const v1::LeaseGrant next_;
  const v1::DeviceInfo device_;
  const CompilePriority priority_;
  JobStop stop_;
  std::deque<Digest> under_way_;  // of the thread
  std::atomic<bool> done_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cubind
