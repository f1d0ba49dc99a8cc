#include "tuner/worker/graph_timer.hpp"

#include <algorithm>

#include "tuner/measure/tick.hpp"

namespace cubind::worker {
namespace {

constexpr unsigned kMaxRepeats = 20;
// Longer work needs fewer repeats to drown the events' overhead.
constexpr double kRepeatsUs = 20'000;
// Where no step shows: what the driver documents for events.
constexpr double kDocumentedEventTickUs = 0.5;

}  // namespace

GraphTimer::GraphTimer(DriverContext& context, OwnKernels& kernels) : context_(context) {
  const cuda::DriverApi& api = context.api();
  cuda::check(api, api.event_create(&start_, cuda::kEventDefault), "cuEventCreate");
  cuda::check(api, api.event_create(&stop_, cuda::kEventDefault), "cuEventCreate");
  tick_us_ = measure_tick(kernels);
}

GraphTimer::~GraphTimer() {
  if (start_ != nullptr) {
    context_.api().event_destroy(start_);
  }
  if (stop_ != nullptr) {
    context_.api().event_destroy(stop_);
  }
}

double GraphTimer::measure_tick(OwnKernels& kernels) {
  std::vector<double> readings;
  for (unsigned i = 0; i < kTickSteps; ++i) {
    const InstantiatedGraph graph(context_, [&] { kernels.spin(kTickFirstClocks + i * kTickStepClocks); });
    readings.push_back(elapsed_us(graph));
  }
  return measure::estimate_tick_us(readings).value_or(kDocumentedEventTickUs) / kMaxRepeats;
}

double GraphTimer::elapsed_us(const InstantiatedGraph& graph) {
  const cuda::DriverApi& api = context_.api();
  cuda::check(api, api.event_record(start_, context_.stream()), "cuEventRecord");
  graph.launch();
  cuda::check(api, api.event_record(stop_, context_.stream()), "cuEventRecord");
  context_.synchronize("a graph of repeats");
  float milliseconds = 0;
  cuda::check(api, api.event_elapsed_time(&milliseconds, start_, stop_), "cuEventElapsedTime");
  return 1000.0 * milliseconds;
}

unsigned GraphTimer::repeats_for(const TimedWork& work) {
  const InstantiatedGraph once(context_, [&] { work.timed(); });
  elapsed_us(once);  // the first launch of a kernel loads it
  const double us = std::max(elapsed_us(once), 1.0);
  return static_cast<unsigned>(std::clamp(kRepeatsUs / us, 1.0, static_cast<double>(kMaxRepeats)));
}

std::vector<double> GraphTimer::measure(const TimedWork& work, unsigned samples) {
  const unsigned repeats = repeats_for(work);
  const auto repeated = [&](bool with_work) {
    for (unsigned i = 0; i < repeats; ++i) {
      if (work.before) {
        work.before();
      }
      if (with_work) {
        work.timed();
      }
    }
  };
  const InstantiatedGraph whole(context_, [&] { repeated(true); });
  std::unique_ptr<InstantiatedGraph> rest;
  if (work.before) {
    rest = std::make_unique<InstantiatedGraph>(context_, [&] { repeated(false); });
  }

  std::vector<double> results;
  whole.launch();  // untimed: the upload of the graph
  if (rest) {
    rest->launch();
  }
  for (unsigned k = 0; k < samples; ++k) {
    const double total = elapsed_us(whole);
    const double overhead = rest ? elapsed_us(*rest) : 0;
    results.push_back(std::max((total - overhead) / repeats, 0.0));
  }
  return results;
}

}  // namespace cubind::worker
