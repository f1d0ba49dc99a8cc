#include "tuner/agent/device/worker_link.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
// The time that a worker gets to close its context when its socket is closed, before it is killed.
constexpr milliseconds kWorkerGoodbye{2000};

}  // namespace

WorkerLink::~WorkerLink() { stop(); }

void WorkerLink::start() {
  stop();
  const std::lock_guard lock(mutex_);
  check_wanted();
  go_on_with(starter_.start());
}

bool WorkerLink::start_spare() {
  stop();
  const std::lock_guard lock(mutex_);
  check_wanted();
  auto spare = spare_ != nullptr ? spare_->take() : std::nullopt;
  if (!spare) {
    return false;
  }
  go_on_with(*std::move(spare));
  return true;
}

void WorkerLink::check_wanted() const {
  if (interrupted_) {
    throw Error(ErrorCode::Cancelled, "device worker", "the job is over");
  }
}

void WorkerLink::go_on_with(WorkerProcess worker) {
  process_ = std::move(worker.process);
  socket_ = std::move(worker.socket);
}

void WorkerLink::stop() noexcept {
  socket_.reset();
  const std::lock_guard lock(mutex_);
  if (!process_) {
    return;
  }
  try {
    if (!process_->wait_until(steady_clock::now() + kWorkerGoodbye)) {
      process_->kill_group();
    }
    process_->wait();
  } catch (const std::exception& error) {
    log_error(std::string("a device worker cannot be waited for: ") + error.what());
  }
  process_.reset();
}

bool WorkerLink::is_started() const {
  const std::lock_guard lock(mutex_);
  return process_.has_value();
}

void WorkerLink::interrupt() noexcept {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (process_) {
    process_->kill_group();
  }
}

DeviceLink::CallResult WorkerLink::gone(bool timed_out, const std::string& what) {
  CallResult answer;
  answer.timed_out = timed_out;
  const std::lock_guard lock(mutex_);
  if (!process_) {
    return answer;
  }
  process_->kill_group();
  const ExitStatus status = process_->wait();
  answer.death = timed_out ? what : status.describe();
  return answer;
}

DeviceLink::CallResult WorkerLink::receive(steady_clock::time_point until) {
  const std::optional<std::string> frame = read_frame_until(socket_.get(), kMaxReplyBytes, until);
  v1::DeviceReply reply;
  if (!frame) {
    return gone(false, "");
  }
  if (!reply.ParseFromString(*frame)) {
    return gone(false, "an answer that is not a DeviceReply");
  }
  return {std::move(reply), false, ""};
}

DeviceLink::CallResult WorkerLink::call(const v1::DeviceRequest& request, milliseconds deadline,
                                        const std::function<void()>& meanwhile) {
  const auto lost = [&](const Error& error) {
    const bool timed_out = error.code() == ErrorCode::DeadlineExceeded;
    return gone(timed_out, "no answer within " + std::to_string(deadline.count()) + " ms");
  };
  auto until = steady_clock::now() + deadline;
  try {
    write_frame_until(socket_.get(), request.SerializeAsString(), until);
  } catch (const Error& error) {
    return lost(error);
  }
  if (meanwhile) {
    const auto begun = steady_clock::now();
    meanwhile();
    until += steady_clock::now() - begun;
  }
  try {
    return receive(until);
  } catch (const Error& error) {
    return lost(error);
  }
}

}  // namespace cubind
