#include "tuner/worker/cupti_timer.hpp"

#include <algorithm>
#include <atomic>
#include <span>

#include "base/error.hpp"
#include "tuner/measure/tick.hpp"

namespace cubind::worker {
namespace {

// Opens the gate also when enqueuing fails: a stream that waits forever would hang the worker.
class GateOpener {
 public:
  GateOpener(std::uint32_t* gate, std::uint32_t count) : gate_(gate), count_(count) {}
  ~GateOpener() { std::atomic_ref<std::uint32_t>(*gate_).store(count_, std::memory_order_release); }
  GateOpener(const GateOpener&) = delete;
  GateOpener& operator=(const GateOpener&) = delete;

 private:
  std::uint32_t* gate_;
  std::uint32_t count_;
};

}  // namespace

CuptiTimer::CuptiTimer(DriverContext& context, OwnKernels& kernels, CuptiRecorder& recorder)
    : context_(context), kernels_(kernels), recorder_(recorder) {
  const cuda::DriverApi& api = context.api();
  void* gate = nullptr;
  cuda::check(api, api.mem_host_alloc(&gate, sizeof(std::uint32_t), cuda::kHostAllocDeviceMap),
              "cuMemHostAlloc");
  gate_ = static_cast<std::uint32_t*>(gate);
  *gate_ = 0;
  cuda::check(api, api.mem_host_get_device_pointer(&gate_on_device_, gate, 0), "cuMemHostGetDevicePointer");

  unsigned step = 0;
  TimedWork work;
  work.timed = [&] { kernels.spin(kTickFirstClocks + kTickStepClocks * step++); };
  const auto tick = measure::estimate_tick_us(measure(work, kTickSteps));
  if (!tick) {
    throw Error(ErrorCode::Unavailable, "CUPTI", "kernels of growing length all have the same time");
  }
  tick_us_ = *tick;
}

CuptiTimer::~CuptiTimer() {
  if (gate_ != nullptr) {
    context_.api().mem_free_host(gate_);
  }
}

// A kernel's time differs by up to 3 % with the number of launches before it, in turns of eight. Samples are
// an even number of launches, mostly, so a kernel of ours before each work lets all works meet all turns.
std::vector<std::vector<double>> CuptiTimer::measure_each(std::span<const TimedWork> works,
                                                          unsigned samples) {
  std::vector<std::unique_ptr<InstantiatedGraph>> graphs(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i].as_graph) {
      graphs[i] = std::make_unique<InstantiatedGraph>(context_, works[i].timed);
      graphs[i]->launch();  // untimed: the upload of the graph
    }
  }
  context_.synchronize("work before the samples");
  recorder_.take(0);  // records of untimed work
  for (std::size_t i = 0; i < works.size(); ++i) {
    kernels_.spin(0);
    for (unsigned k = 0; k < samples; ++k) {
      run_sample(works[i], graphs[i].get());
    }
  }
  context_.synchronize("the timed kernels");
  return read(works, samples);
}

// A variant of several kernels is timed from the first one's start to the last one's end, so the host must
// not be what the later ones wait for (a launch costs 3.9 us): the stream waits at a gate until all are
// enqueued.
void CuptiTimer::run_sample(const TimedWork& work, const InstantiatedGraph* graph) {
  if (work.before) {
    work.before();
  }
  if (graph != nullptr) {
    return graph->launch();
  }
  if (work.kernels < 2) {
    return work.timed();
  }
  ++gate_count_;
  const GateOpener opener(gate_, gate_count_);
  cuda::check(context_.api(),
              context_.api().stream_wait_value32(context_.stream(), gate_on_device_, gate_count_,
                                                 cuda::kWaitValueGeq),
              "cuStreamWaitValue32");
  work.timed();
}

std::vector<std::vector<double>> CuptiTimer::read(std::span<const TimedWork> works, unsigned samples) {
  std::size_t expected = 0;
  for (const TimedWork& work : works) {
    expected += 1 + samples * (std::size_t{work.kernels_before} + work.kernels);
  }
  std::vector<CuptiRecorder::KernelRecord> records = recorder_.take(expected);
  if (records.size() != expected) {
    throw Error(ErrorCode::Unavailable, "CUPTI",
                std::to_string(records.size()) + " kernel records, not " + std::to_string(expected) +
                    ", for " + std::to_string(samples) + " samples");
  }
  // Launches on one stream run in order; the kernels of one graph share a correlation id.
  std::ranges::sort(records, [](const auto& a, const auto& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.start_ns < b.start_ns;
  });
  std::vector<std::vector<double>> results(works.size());
  auto rest = std::span(records);
  for (std::size_t i = 0; i < works.size(); ++i) {
    rest = rest.subspan(1);
    for (unsigned k = 0; k < samples; ++k) {
      const auto sample = rest.subspan(works[i].kernels_before, works[i].kernels);
      const auto start = std::ranges::min(sample, {}, &CuptiRecorder::KernelRecord::start_ns).start_ns;
      const auto end = std::ranges::max(sample, {}, &CuptiRecorder::KernelRecord::end_ns).end_ns;
      results[i].push_back(static_cast<double>(end - start) * 1e-3);
      rest = rest.subspan(works[i].kernels_before + works[i].kernels);
    }
  }
  return results;
}

}  // namespace cubind::worker
