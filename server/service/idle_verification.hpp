// Stale records are measured again while no other job needs their GPU.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "server/service/context.hpp"
#include "server/service/measured_records.hpp"

namespace cubind {

struct IdleVerificationOptions {
  std::chrono::milliseconds look{1000};
  std::chrono::milliseconds idle{std::chrono::minutes(5)};  // so long no job was open for the device class
  double share = 0.05;                                      // of the time, at most
  std::chrono::milliseconds look_again{std::chrono::minutes(5)};  // where nothing was stale
};

/// One record at a time, by a job as `verify` submits it, which any other job passes and which gives way to
/// other processes on the GPU. Each record is tried once in the daemon's life. Made once; everything else
/// on the job thread, but for the search for stale records. Calls that are under way keep what they need
/// alive.
class IdleVerification : public std::enable_shared_from_this<IdleVerification> {
 public:
  IdleVerification(ServiceContext& context, IdleVerificationOptions options)
      : context_(context), options_(options) {}

  /// Call it again and again.
  void tick();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct ClassState {
    Time busy{};            // when a job was last seen open for the class, or when the class was first seen
    Time rests_until{};     // after a job of ours, or where nothing was stale
    bool occupied = false;  // we look for a record, or measure one
  };
  void look_at(const Digest& device_class, Time now);
  /// On the background thread.
  void search(const Digest& device_class);
  void submit(const Digest& device_class, const MeasuredRecord& record);
  void ended(const Digest& device_class, double elapsed_ms);

  ServiceContext& context_;
  const IdleVerificationOptions options_;
  Time next_look_{};
  std::map<Digest, ClassState> classes_;
  std::set<std::int64_t> tried_;  // record ids
};

}  // namespace cubind
