// The timer where CUPTI is denied: a graph of repeats between two events.
#pragma once

#include <memory>

#include "tuner/worker/timer.hpp"

namespace cubind::worker {

/// Events around one short kernel read several times its time (3.7 us for 0.8 us). So the work is repeated
/// within one graph, and a sample is the graph's time over the repeats. The work before each repeat (the
/// flush, restoring) is in the graph too. A second graph with that work alone is timed right after, and the
/// difference counts. The step from node to node, about 0.2 us on an H200, stays in the figure: it is
/// evidence of another kind than CUPTI's, and says so by its name. The policy's graph launch makes no
/// difference here.
class GraphTimer final : public Timer {
 public:
  GraphTimer(DriverContext& context, OwnKernels& kernels);
  ~GraphTimer() override;

  std::string name() const override { return "graph"; }
  double tick_us() const override { return tick_us_; }
  std::vector<double> measure(const TimedWork& work, unsigned samples) override;

 private:
  double elapsed_us(const InstantiatedGraph& graph);
  unsigned repeats_for(const TimedWork& work);
  double measure_tick(OwnKernels& kernels);

  DriverContext& context_;
  cuda::Event start_ = nullptr;
  cuda::Event stop_ = nullptr;
  double tick_us_ = 0;
};

}  // namespace cubind::worker
