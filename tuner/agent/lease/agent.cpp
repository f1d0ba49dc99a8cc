#include "tuner/agent/lease/agent.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process_host.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "schemas/limits.hpp"
#include "tuner/agent/compile/compile_job.hpp"
#include "tuner/agent/lease/agent_work.hpp"
#include "tuner/agent/tuning/tune_job.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick{100};
constexpr milliseconds kReconnect{500};
constexpr milliseconds kSilence{10'000};  // of a daemon that the agent cannot reach, before the log says so

}  // namespace

Agent::Agent(AgentOptions options) : options_(std::move(options)), lends_(process_host()) {
  // Devices are looked at while the compilers start.
  FoundDevices found;
  std::thread finder([&] { found = find_devices(options_, spawner_); });
  FileDigests digests;
  toolbox_ = std::make_unique<Toolbox>(options_, find_toolchains(ToolchainSearch::of_process(), digests));
  finder.join();
  no_device_because_ = found.none_because;
  for (LocalDevice& device : found.devices) {
    gpus_.push_back(std::make_unique<AgentGpu>(std::move(device), spawner_, options_.worker_program));
  }
  get_compilers_ready();
}

Agent::~Agent() {
  ending_.request_stop();
  stop_all(JobStop::Kind::Drop);
  reap(true);
  if (looking_.valid()) {
    looking_.wait();
  }
}

v1::Hello Agent::hello() {
  const std::lock_guard lock(mutex_);
  v1::Hello hello;
  hello.set_agent_id(options_.agent_id);
  hello.set_protocol(kAgentProtocol);
  hello.set_oldest_protocol(kOldestAgentProtocol);
  hello.set_version(kVersion);
  hello.set_compile_jobs(options_.compile_jobs);
  hello.set_no_device_because(no_device_because_);
  hello.set_allows_partial_sandbox(options_.allow_partial_sandbox);
  for (const auto& gpu : gpus_) {
    *hello.add_devices() = gpu->device.offer;
  }
  for (const Tool& tool : toolbox_->tools()) {
    *hello.add_toolchains() = tool.offer();
  }
  return hello;
}

void Agent::run(const std::function<bool(milliseconds)>& wait) {
  for (const auto& gpu : gpus_) {
    log_info("offers " + gpu->device.offer.facts().name() + " (" + gpu->device.offer.uuid() + ")");
  }
  if (gpus_.empty()) {
    log_warning("offers no GPU and measures nothing: " + no_device_because_);
  }
  bool ending = false;
  while (!ending) {
    if (open_stream()) {
      serve(wait, ending);
    }
    ending = ending || wait(kReconnect) || is_idle_for_long();
  }
}

// A token or a certificate that someone is replacing can be read a little later.
bool Agent::open_stream() {
  try {
    stream_ = std::make_unique<LeaseStream>(
        options_.address, hello(), [this](const v1::DaemonMessage& message) { handle(message); },
        options_.token_file);
    not_opened_.clear();
  } catch (const Error& error) {
    if (!was_welcomed_) {
      throw;
    }
    if (std::exchange(not_opened_, error.what()) != error.what()) {
      log_warning(not_opened_ + "; the daemon is tried again until this is mended");
    }
  }
  return stream_ != nullptr;
}

void Agent::serve(const std::function<bool(milliseconds)>& wait, bool& ending) {
  // The stream's reader sends the first message, and waits for the daemon with it: no other thread writes
  // until the daemon has welcomed the agent, however long it was away.
  heartbeat_ = milliseconds(0);
  stream_->start();
  attend(wait, ending);
  was_welcomed_ = was_welcomed_ || heartbeat_.load().count() > 0;
  if (stream_->is_refused() && !was_welcomed_) {
    throw Error(ErrorCode::FailedPrecondition, options_.address,
                "the daemon refuses this agent: " + stream_->broken().value_or(""));
  }
  if (stream_->broken()) {
    log_warning("the stream to " + options_.address + " broke: " + *stream_->broken());
    stop_all(JobStop::Kind::Drop);
  } else {
    hand_back();
  }
  reap(true);
  // Messages that came meanwhile have begun work on the old stream.
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  stop_all(JobStop::Kind::Drop);
  reap(true);
  end_all_ahead();
  stream_.reset();
  lends_.replace({});  // of the daemon's callers
  const std::lock_guard lock(mutex_);
  draining_ = false;
}

void Agent::attend(const std::function<bool(milliseconds)>& wait, bool& ending) {
  const auto started = steady_clock::now();
  bool is_told = false;
  while (!ending && !stream_->broken()) {
    ending = wait(kTick) || is_idle_for_long();
    if (heartbeat_.load().count() > 0) {
      send_heartbeats();
      look_at_memory();
      keep_spares();
    } else if (!is_told && steady_clock::now() - started > kSilence) {
      is_told = true;
      log_warning(
          options_.address +
          ": no daemon answers there; it is tried again until one does. `cubindctl health --address " +
          options_.address + "`, with the same environment, says why");
    }
    reap(false);
  }
}

void Agent::handle(const v1::DaemonMessage& message) {
  switch (message.body_case()) {
    case v1::DaemonMessage::kWelcome:
      log_info("works for the daemon at " + options_.address + ", version " +
               message.welcome().daemon_version());
      heartbeat_ = milliseconds(message.welcome().heartbeat_ms());
      return;
    case v1::DaemonMessage::kLease:
      return take(message.lease());
    case v1::DaemonMessage::kCheck:
      return begin(message.check());
    case v1::DaemonMessage::kNext:
      return compile_ahead(message.next(), {});
    case v1::DaemonMessage::kAwaited:
      if (const auto work = find_work(message.awaited().lease_id()); work && work->channel) {
        work->channel->set_awaited();
      }
      return;
    case v1::DaemonMessage::kLends:
      return take(message.lends());
    case v1::DaemonMessage::kEndLease:
      if (const auto work = find_work(message.end_lease().lease_id())) {
        log_info(work->lease_id + " ended by the daemon: " + message.end_lease().reason());
        work->stop.request(JobStop::Kind::Drop);
      }
      return;
    case v1::DaemonMessage::kDrain:
      return stop_all(JobStop::Kind::HandBack);
    default:
      return;
  }
}

void Agent::take(const v1::Lends& lends) {
  lends_.replace(lends);
  for (const auto& work : works()) {
    work->stop.wake();
  }
}

// The pages of a lease follow each other.
void Agent::take(const v1::LeaseGrant& page) {
  if (page.lease_id() != pages_.lease_id()) {
    pages_.Clear();
  }
  pages_.MergeFrom(page);
  if (!page.more()) {
    begin(std::exchange(pages_, {}));
  }
}

void Agent::begin(const v1::LeaseGrant& lease) {
  auto work = std::make_shared<Work>();
  work->lease_id = lease.lease_id();
  work->heartbeat = milliseconds(std::max<std::uint32_t>(lease.lease_ms() / 3, 50));
  work->last_sent = steady_clock::now();
  work->gpu_uuid = lease.gpu_uuid();
  work->channel = std::make_unique<LeaseChannel>(*stream_, lease, work->stop);
  const std::lock_guard lock(mutex_);
  if (draining_) {
    return;
  }
  Work& added = *works_.emplace_back(std::move(work));
  added.thread = std::thread([this, &added, lease] { work_on(added, lease); });
}

void Agent::begin(const v1::CheckOrder& order) {
  const std::lock_guard lock(mutex_);
  if (draining_) {
    return;
  }
  Work& added = *works_.emplace_back(std::make_shared<Work>());
  added.lease_id = order.id();
  added.thread = std::thread([this, &added, order] {
    try {
      v1::AgentMessage message;
      *message.mutable_check() = run_check(order, *toolbox_, added.stop);
      stream_->send(message);
    } catch (const std::exception& error) {
      log_info(order.id() + " ended without an answer: " + error.what());
    }
    added.done = true;
  });
}

// The one place where what goes wrong with a job ends.
void Agent::work_on(Work& work, const v1::LeaseGrant& lease) {
  try {
    const v1::JobResult result = work_result(work, lease);
    if (result.status() != v1::JobResult::DONE) {
      log_warning(lease.job_id() + ": " + result.error());
    }
    work.channel->finish(result);
  } catch (const std::exception& error) {
    log_info(lease.lease_id() + " ended: " + error.what());
  }
  work.wants_gpu = false;
  end_left_workers();
  work.done = true;
}

// The lease of the next job comes before the acknowledgement of this one's result: where none has come,
// no caller waits any more.
void Agent::end_left_workers() {
  const std::list<std::shared_ptr<Work>> all = works();
  for (const auto& gpu : gpus_) {
    const bool is_wanted = std::ranges::any_of(all, [&](const std::shared_ptr<Work>& work) {
      return work->wants_gpu && work->gpu_uuid == gpu->device.offer.uuid();
    });
    if (!is_wanted) {
      gpu->end_left_worker();
      end_ahead(gpu->device.offer.uuid());
    }
  }
  keep_spares();
}

v1::JobResult Agent::work_result(Work& work, const v1::LeaseGrant& lease) {
  v1::JobResult result;
  try {
    if (lease.kind() == v1::Job::TUNE) {
      return tune(work, lease);
    }
    return run_compile_job(lease, *toolbox_, *work.channel, work.stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Aborted || work.stop.kind() == JobStop::Kind::Drop) {
      throw;
    }
    const bool again = error.code() == ErrorCode::Cancelled || error.code() == ErrorCode::Unavailable;
    result.set_status(again ? v1::JobResult::INTERRUPTED : v1::JobResult::FAILED);
    result.set_error(valid_utf8(error.what()));
  } catch (const std::exception& error) {
    result.set_status(v1::JobResult::FAILED);
    result.set_error(valid_utf8(std::string("internal: ") + error.what()));
  }
  return result;
}

AgentGpu& Agent::gpu_for(const v1::LeaseGrant& lease) {
  for (const auto& gpu : gpus_) {
    if (lease.gpu_uuid().empty() || gpu->device.offer.uuid() == lease.gpu_uuid()) {
      return *gpu;
    }
  }
  throw Error(ErrorCode::Unavailable, "lease.gpu_uuid", lease.gpu_uuid() + " is not offered by this agent");
}

v1::JobResult Agent::tune(Work& work, const v1::LeaseGrant& lease) {
  AgentGpu& gpu = gpu_for(lease);
  AgentGpu::Turn turn(gpu, work.stop);
  const v1::OfferedDevice& offer = gpu.device.offer;
  const Tool& tool = tool_for(offer, lease.spec());
  TuneJob::Options options;
  options.deadlines = options_.deadlines;
  options.when = options_.tune_when;
  options.idle_poll = options_.idle_poll;
  // A compile may take three times as long as the others, which go on meanwhile.
  options.compile_window = std::max<std::size_t>(32, 4 * std::size_t{options_.compile_jobs});
  options.open = gpu.device.open;
  options.lend = [this, uuid = offer.uuid()] { return lends_.of(uuid); };
  options.on_device = [&](const v1::DeviceInfo& info) { offer_again(gpu, info); };
  if (!turn.link().is_started()) {
    v1::LeaseGrant first = lease;
    first.set_background(!work.channel->is_awaited());
    // While a worker is started and opens the GPU. No slot is left to a job that runs: it is this one.
    compile_ahead(first, {CompilePriority::Tuning, options.compile_window});
  }
  TuneJob job({*tool.compiles, *tool.builds, turn.link(), *work.channel, work.stop, clock_}, options);
  v1::JobResult result = job.run(lease);
  const bool refused = result.status() == v1::JobResult::FAILED && result.needs_bytes() > 0;
  if (refused) {
    turn.end_worker();
    say_what_there_is(gpu, result);
  }
  return result;
}

std::list<std::shared_ptr<Agent::Work>> Agent::works() {
  const std::lock_guard lock(mutex_);
  return works_;
}

std::shared_ptr<Agent::Work> Agent::find_work(const std::string& lease_id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(works_, lease_id, &Work::lease_id);
  return found == works_.end() ? nullptr : *found;
}

bool Agent::has_work() {
  const std::lock_guard lock(mutex_);
  return !works_.empty();
}

// Stopping a job may wait for its worker's end: not under the lock.
void Agent::stop_all(JobStop::Kind kind) {
  for (const auto& work : works()) {
    work->stop.request(kind);
  }
}

void Agent::reap(bool all) {
  std::list<std::shared_ptr<Work>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = works_.begin(); at != works_.end();) {
      const auto next = std::next(at);
      if (all || (*at)->done) {
        ended.splice(ended.end(), works_, at);
      }
      at = next;
    }
  }
  for (const auto& work : ended) {
    work->thread.join();
  }
}

void Agent::send_heartbeats() {
  say_it_is_there();
  const auto now = steady_clock::now();
  for (const auto& work : works()) {
    if (!work->channel || work->done) {
      continue;
    }
    work->channel->send_waiting();
    if (now - work->last_sent < work->heartbeat) {
      continue;
    }
    work->last_sent = now;
    work->channel->heartbeat();
  }
}

// The daemon takes a silent agent for a lost one, also while it has no lease.
void Agent::say_it_is_there() {
  const milliseconds every = heartbeat_;
  const auto now = steady_clock::now();
  if (every.count() == 0 || now - said_ < every) {
    return;
  }
  said_ = now;
  v1::AgentMessage message;
  message.mutable_heartbeat();
  stream_->send(message);
}

}  // namespace cubind
