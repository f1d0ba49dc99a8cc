#include "tuner/worker/gpu_session.hpp"

#include <utility>

#include "base/error.hpp"
#include "plan/facts/gpu_facts.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/graph_timer.hpp"
#include "tuner/worker/timer_choice.hpp"

namespace cubind::worker {
namespace {

// NVML's utilization is that of up to a second before.
constexpr std::chrono::milliseconds kUtilizationMemory{2000};

// The time for which a worker that has just been killed may still hold its GPU.
constexpr std::chrono::milliseconds kLockPatience{3000};

// A configuration needs several requests, each of about 0.1 ms, and a reading takes 0.05 ms.
constexpr std::chrono::milliseconds kStaysRead{5};

// So long after its last work the clock of a GPU is still up.
constexpr std::chrono::milliseconds kStaysWarm{300};

GpuLock take_lock(const std::string& uuid) {
  auto lock = GpuLock::acquire(gpu_lock_folder(), uuid, kLockPatience);
  if (!lock) {
    throw Error(ErrorCode::Aborted, uuid, "another tuner holds this GPU");
  }
  return std::move(*lock);
}

}  // namespace

GpuSession::GpuSession(const v1::OpenDevice& request, Lend lend)
    : request_(request),
      context_(request.gpu()),
      monitor_(context_),
      lock_(take_lock(context_.facts().uuid)),
      lend_(std::move(lend)),
      consent_(monitor_.use()) {
  if (!request.timer().empty() && request.timer() != "cupti" && request.timer() != "graph") {
    throw Error(ErrorCode::InvalidArgument, "open.timer",
                "\"" + request.timer() + "\" (known: cupti, graph)");
  }
}

void GpuSession::activate() {
  if (active()) {
    return;
  }
  // CUPTI has to be there before the context.
  if (request_.timer() == "graph") {
    timer_note_ = "asked for";
  } else {
    recorder_ = CuptiRecorder::open(timer_note_);
  }
  consent_.before_context(monitor_.use());
  context_.activate();
  consent_.context_made(monitor_.use(), lend_);
  budget_.emplace(context_.api(),
                  verify::memory_share(request_.memory_fraction(), context_.free_memory_bytes()));
  kernels_ = std::make_unique<OwnKernels>(context_, *budget_);
  make_timer();
  worked();
}

void GpuSession::begin_anew() {
  context_.synchronize("what the earlier job left");
  budget_->set_limit(verify::memory_share(request_.memory_fraction(),
                                          context_.free_memory_bytes() + budget_->taken_bytes()));
  throttle_ = measure::ThrottlePolicy();
}

void GpuSession::make_timer() {
  TimerMakers makers;
  if (recorder_) {
    makers.cupti = [this] { return std::make_unique<CuptiTimer>(context_, *kernels_, *recorder_); };
  }
  makers.graph = [this] {
    recorder_.reset();  // its records would not be read
    return std::make_unique<GraphTimer>(context_, *kernels_);
  };
  ChosenTimer chosen = choose_timer(request_.timer(), makers, timer_note_);
  timer_ = std::move(chosen.timer);
  timer_note_ = std::move(chosen.note);
}

const std::string& GpuSession::others() {
  const auto now = std::chrono::steady_clock::now();
  const bool idle = now - last_work_ > kUtilizationMemory;
  GpuUse use = monitor_.use();
  others_ = consent_.others(use, allocated_bytes(), idle, lend_);
  if (!others_.empty()) {
    use.idle = monitor_.idle_times(use.processes);
    others_ = consent_.others(use, allocated_bytes(), idle, lend_);
  }
  others_read_ = now;
  return others_;
}

const std::string& GpuSession::others_lately() {
  return std::chrono::steady_clock::now() - others_read_ < kStaysRead ? others_ : others();
}

v1::DeviceInfo GpuSession::info() const {
  v1::DeviceInfo info;
  facts_to_wire(context_.facts(), *info.mutable_facts());
  info.mutable_driver()->set_cuda(context_.driver_version().cuda);
  info.mutable_driver()->set_version(context_.driver_version().version);
  info.set_uuid(context_.facts().uuid);
  info.set_free_memory_bytes(free_memory_bytes());
  info.set_consent_rule(consent_.rule());
  info.set_memory_limit_bytes(budget_
                                  ? budget_->limit_bytes()
                                  : verify::memory_share(request_.memory_fraction(), free_memory_bytes()));
  if (!active()) {
    return info;
  }
  info.set_timer(timer_->name());
  info.set_tick_us(timer_->tick_us());
  info.set_timer_note(timer_note_);
  return info;
}

void GpuSession::worked() {
  if (is_warm()) {
    warmed_up();
  }
  last_work_ = std::chrono::steady_clock::now();
}

void GpuSession::warmed_up() { warm_until_ = std::chrono::steady_clock::now() + kStaysWarm; }

bool GpuSession::is_warm() const { return std::chrono::steady_clock::now() < warm_until_; }

const L2Flush& GpuSession::flush() {
  if (!flush_) {
    flush_ = std::make_unique<L2Flush>(context_, *kernels_, *budget_);
  }
  return *flush_;
}

}  // namespace cubind::worker
