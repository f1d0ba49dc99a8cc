#include "tuner/agent/device/remote_device.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "tuner/agent/device/prepare_request.hpp"

namespace cubind {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A verification of many launches has the time of one for each so many.
constexpr std::uint32_t kLaunchesPerDeadline = 32;

v1::DeviceReply done_already() {
  v1::DeviceReply reply;
  reply.set_outcome(v1::CORRECT);
  return reply;
}

v1::DeviceReply taken() {
  v1::DeviceReply reply = done_already();
  reply.set_foreign_use(true);
  return reply;
}

bool works(const v1::DeviceRequest& request) { return !request.has_open() && !request.has_probe(); }

// Whether a worker that has answered so may work for the next job. A lack of memory is no fault.
bool went_well(const v1::DeviceReply& reply) {
  const auto is_fine = [](v1::Outcome outcome) {
    return outcome == v1::CORRECT || outcome == v1::OUT_OF_MEMORY;
  };
  return is_fine(reply.outcome()) && std::ranges::all_of(reply.measured(), [&](const v1::MeasuredItem& item) {
           return is_fine(item.outcome()) && !item.below_floor();
         });
}

v1::DeviceReply reply_of_death(const DeviceLink::CallResult& answer) {
  v1::DeviceReply reply;
  reply.set_outcome(answer.timed_out ? v1::TIMEOUT : v1::RUNTIME);
  reply.set_detail("the device worker died: " + answer.death);
  reply.set_sticky(true);
  return reply;
}

}  // namespace

RemoteDevice::RemoteDevice(DeviceLink& link, v1::OpenDevice open, JobStop& stop, DeviceDeadlines deadlines,
                           std::function<GpuLend()> lend)
    : link_(link),
      open_(std::move(open)),
      stop_(stop),
      deadlines_(deadlines),
      lend_(std::move(lend)),
      hook_(stop, [&link] { link.interrupt(); }) {}

RemoteDevice::~RemoteDevice() {
  if (!running_ || !leaves_open_ || !is_sound_) {
    link_.stop();
  }
}

void RemoteDevice::lose() {
  link_.stop();
  running_ = false;
  prepared_.clear();
  loaded_.clear();
  unloaded_.clear();
}

void RemoteDevice::restart() {
  if (running_) {
    lose();
  }
}

// The worker of an earlier job may have died meanwhile, or its context fail, and a spare one is useless where
// the GPU was reset or repartitioned after it had initialised the driver: then a fresh one is opened. Another
// tuner that holds the GPU holds it for a fresh one too.
DeviceLink::CallResult RemoteDevice::send_open() {
  v1::DeviceRequest request;
  *request.mutable_open() = open_;
  add_lend(request);
  running_ = true;
  is_sound_ = true;
  ++generation_;
  last_run_ = {};
  if (link_.is_started() || link_.start_spare()) {
    DeviceLink::CallResult answer = link_.call(request, deadlines_.open, {});
    if (answer.reply && (answer.reply->outcome() == v1::CORRECT || answer.reply->foreign_use())) {
      return answer;
    }
  }
  stop_.check();
  link_.start();
  return link_.call(request, deadlines_.open, {});
}

std::optional<v1::DeviceReply> RemoteDevice::open() {
  if (running_) {
    return std::nullopt;
  }
  stop_.check();
  const GpuLend lend = lend_now();
  DeviceLink::CallResult answer = send_open();
  stop_.check();
  if (answer.reply) {
    note_foreign_use(*answer.reply, lend);
  }
  if (!answer.reply || answer.reply->outcome() != v1::CORRECT) {
    lose();
    if (answer.reply && answer.reply->foreign_use()) {
      return taken();
    }
    throw Error(ErrorCode::Unavailable, "device worker",
                "the device cannot be opened: " + (answer.reply ? answer.reply->detail() : answer.death));
  }
  learn(*answer.reply);
  return std::nullopt;
}

// A device that gives way to others at first tells its timer only when it is used.
void RemoteDevice::learn(const v1::DeviceReply& reply) {
  if (reply.has_info()) {
    info_ = reply.info();
  }
  if (!info_) {
    return;
  }
  if (info_->timer().empty()) {
    info_->set_timer(reply.timer());
  }
  if (info_->tick_us() <= 0) {
    info_->set_tick_us(reply.tick_us());
  }
}

const v1::DeviceInfo& RemoteDevice::info() const {
  if (!info_) {
    throw Error(ErrorCode::Unavailable, "device worker", "no device was opened");
  }
  return *info_;
}

DeviceLink::CallResult RemoteDevice::call_and_work(const v1::DeviceRequest& request, milliseconds deadline) {
  meanwhile_took_ = {};
  if (!meanwhile_) {
    return link_.call(request, deadline, {});
  }
  try {
    return link_.call(request, deadline, [this] {
      const auto began = steady_clock::now();
      std::exchange(meanwhile_, {})();
      meanwhile_took_ = steady_clock::now() - began;
    });
  } catch (...) {
    lose();
    throw;
  }
}

v1::DeviceReply RemoteDevice::call(v1::DeviceRequest request, milliseconds deadline) {
  if (auto not_opened = open()) {
    return *not_opened;
  }
  request.mutable_unload()->Assign(unloaded_.begin(), unloaded_.end());
  unloaded_.clear();
  const GpuLend lend = add_lend(request);
  DeviceLink::CallResult answer = call_and_work(request, deadline);
  worked_until_ = works(request) ? steady_clock::now() : worked_until_;
  // A worker that was killed to end the job has not failed.
  stop_.check();
  if (!answer.reply) {
    lose();
    return reply_of_death(answer);
  }
  v1::DeviceReply& reply = *answer.reply;
  note_foreign_use(reply, lend);
  is_sound_ = is_sound_ && went_well(reply);
  if (reply.sticky()) {
    lose();
  }
  if (reply.outcome() == v1::OUTCOME_UNSPECIFIED) {
    // The worker's words begin with their place: a replayed table, a field of the request.
    throw Error(ErrorCode::Internal, "",
                reply.detail().empty() ? "the device worker replied without an outcome" : reply.detail());
  }
  if (!reply.sticky()) {
    learn(reply);
  }
  return reply;
}

GpuLend RemoteDevice::add_lend(v1::DeviceRequest& request) const {
  GpuLend lend = lend_now();
  if (!lend.lenders.empty()) {
    const auto rested = steady_clock::now() - std::max(worked_until_, lend.since);
    request.mutable_lenders()->Assign(lend.lenders.begin(), lend.lenders.end());
    request.set_rested_ms(static_cast<std::uint32_t>(duration_cast<milliseconds>(rested).count()));
  }
  return lend;
}

void RemoteDevice::note_foreign_use(v1::DeviceReply& reply, const GpuLend& lend) {
  if (lend_now().ended != lend.ended) {
    reply.set_foreign_use(true);
    reply.set_foreign_because("a process that lent the GPU goes on");
  }
  foreign_use_ = reply.foreign_use();
  foreign_because_ = reply.foreign_because();
}

std::string RemoteDevice::foreign_because() const {
  const std::string refused = lend_now().refused;
  return foreign_because_ + (refused.empty() || foreign_because_.empty() ? "" : "; ") + refused;
}

v1::DeviceReply RemoteDevice::probe() {
  v1::DeviceRequest request;
  request.mutable_probe();
  return call(std::move(request), deadlines_.control);
}

v1::DeviceReply RemoteDevice::prepare(std::uint32_t setup, const std::function<v1::PrepareProblem()>& make) {
  if (auto not_opened = open()) {
    return *not_opened;
  }
  if (prepared_.contains(setup)) {
    return done_already();
  }
  v1::DeviceRequest request;
  *request.mutable_prepare() = make();
  const auto began = steady_clock::now();
  const milliseconds deadline = deadlines_.prepare + prepare_time(request.prepare());
  v1::DeviceReply reply = call(std::move(request), deadline);
  if (reply.outcome() == v1::CORRECT) {
    prepare_took_ = std::max(prepare_took_, duration_cast<milliseconds>(steady_clock::now() - began));
    prepared_.insert(setup);
  }
  return reply;
}

void RemoteDevice::release(std::uint32_t setup) {
  if (!running_ || prepared_.erase(setup) == 0) {
    return;
  }
  v1::DeviceRequest request;
  request.mutable_release()->set_setup(setup);
  call(std::move(request), deadlines_.control);
}

bool RemoteDevice::release_all() {
  const std::set<std::uint32_t> setups = prepared_;
  for (const std::uint32_t setup : setups) {
    release(setup);
  }
  return !setups.empty();
}

v1::DeviceReply RemoteDevice::load(std::uint32_t trial, const std::function<v1::LoadTrial()>& make) {
  if (auto not_opened = open()) {
    return *not_opened;
  }
  if (const auto found = loaded_.find(trial); found != loaded_.end()) {
    return found->second;
  }
  v1::DeviceRequest request;
  *request.mutable_load() = make();
  v1::DeviceReply reply = call(std::move(request), deadlines_.load);
  if (reply.outcome() == v1::CORRECT) {
    loaded_[trial] = reply;
  }
  return reply;
}

void RemoteDevice::unload(std::uint32_t trial) {
  if (!running_ || loaded_.erase(trial) == 0) {
    return;
  }
  unloaded_.push_back(trial);
}

milliseconds RemoteDevice::run_deadline() const {
  return deadlines_.run + deadlines_.run_prepares * prepare_took_;
}

v1::DeviceReply RemoteDevice::verify(const v1::VerifyTrial& verify) {
  v1::DeviceRequest request;
  *request.mutable_verify() = verify;
  return call(std::move(request), run_deadline() * (1 + verify.launches() / kLaunchesPerDeadline));
}

v1::DeviceReply RemoteDevice::measure(v1::MeasureTrials measure) {
  if (auto not_opened = open()) {
    return *not_opened;
  }
  if (steady_clock::now() - last_run_ > deadlines_.cools_down) {
    measure.set_warm_up(true);
  }
  v1::DeviceRequest request;
  *request.mutable_measure() = std::move(measure);
  v1::DeviceReply reply = call(std::move(request), run_deadline());
  last_run_ = steady_clock::now() - meanwhile_took_;  // in which the device may have rested
  return reply;
}

}  // namespace cubind
