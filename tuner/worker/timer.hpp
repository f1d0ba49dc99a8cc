// How long a variant runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/worker/driver_context.hpp"
#include "tuner/worker/own_kernels.hpp"

namespace cubind::worker {

/// One sample is `before` and then `timed`, both enqueued on the context's stream; only `timed` counts, from
/// its first kernel's start to its last one's end. Where `timed` is launched as a graph, it is called once.
struct TimedWork {
  std::function<void()> before;  // `kernels_before` kernel launches and memory operations; may be empty
  std::function<void()> timed;   // `kernels` kernel launches and nothing else
  unsigned kernels_before = 0;
  unsigned kernels = 1;
  bool as_graph = false;  // the policy: `timed` is launched as one graph
};

/// One way of timing on the device.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual std::string name() const = 0;
  /// The smallest step between two readings.
  virtual double tick_us() const = 0;
  /// Microseconds of each sample, in order. Throws DriverError for the kernels' faults, Error(Unavailable)
  /// where the timer itself does not work here.
  virtual std::vector<double> measure(const TimedWork& work, unsigned samples) = 0;
  /// So many samples of each, one work after the other.
  virtual std::vector<std::vector<double>> measure_each(std::span<const TimedWork> works, unsigned samples);
};

/// Work of slightly growing length, for measuring a tick with: kTickSteps kernels, the i-th of
/// kTickFirstClocks + i * kTickStepClocks clocks, so that the readings lie in neighbouring ticks.
inline constexpr unsigned kTickSteps = 96;
inline constexpr unsigned kTickFirstClocks = 600;
inline constexpr unsigned kTickStepClocks = 40;

/// A captured and instantiated piece of work. One thread.
class InstantiatedGraph {
 public:
  /// Calls `enqueue` with the context's stream capturing. Throws DriverError.
  InstantiatedGraph(const DriverContext& context, const std::function<void()>& enqueue);
  ~InstantiatedGraph();
  InstantiatedGraph(const InstantiatedGraph&) = delete;
  InstantiatedGraph& operator=(const InstantiatedGraph&) = delete;

  void launch() const;

 private:
  const DriverContext& context_;
  cuda::Graph graph_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
};

}  // namespace cubind::worker
