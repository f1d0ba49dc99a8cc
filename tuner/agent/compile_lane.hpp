#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "tuner/agent/compile_input.hpp"
#include "tuner/agent/compile_slots.hpp"

namespace cubind {

/// The requests of a compile pool that wait for workers of one kind, and the threads, one for each worker,
/// that wait for requests. Guarded by the pool's mutex.
struct CompileLane {
  /// A request that waits, or a probe for a worker's hello. Without either the thread only starts its worker.
  struct Job {
    std::uint64_t id = 0;
    CompilePriority priority = CompilePriority::Tuning;
    std::optional<CompileInput> input;
    std::shared_ptr<std::promise<v1::CompileWorkerHello>> probe;
  };

  /// Higher priorities first, then the order of submission.
  struct Order {
    int negative_priority = 0;
    std::uint64_t id = 0;
    auto operator<=>(const Order&) const = default;
  };

  bool in_background = false;
  unsigned threads = 0;
  unsigned kept = 0;   // so many threads have a worker also without a request
  unsigned ready = 0;  // threads that have a worker and nothing to do
  unsigned bare = 0;   // threads that have neither
  std::map<Order, Job> waiting = {};
  std::condition_variable work = {};  // any of these or the pool's end changed

  /// Those that live or are being started.
  unsigned workers() const { return threads - bare; }
};

}  // namespace cubind
