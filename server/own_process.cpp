#include "server/own_process.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/subprocess.hpp"

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::milliseconds kLongestDelay{30'000};
constexpr std::chrono::seconds kGoodLife{30};

}  // namespace

OwnProcess::OwnProcess(OwnProcessOptions options, std::function<void()> starting)
    : options_(std::move(options)), starting_(std::move(starting)), thread_([this] { run(); }) {}

OwnProcess::~OwnProcess() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = killing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OwnProcess::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void OwnProcess::run() {
  auto delay = options_.first_delay;
  while (true) {
    const auto born = std::chrono::steady_clock::now();
    try {
      live();
    } catch (const Error& error) {
      log_error("the " + options_.name + " cannot be started: " + error.what());
    }
    if (std::chrono::steady_clock::now() - born > kGoodLife) {
      delay = options_.first_delay;
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, delay, [&] { return stopping_; })) {
      return;
    }
    delay = std::min(delay * 2, kLongestDelay);
  }
}

void OwnProcess::live() {
  starting_();
  SubprocessOptions options;
  options.program = options_.program.string();
  options.arguments = options_.arguments;
  options.arguments.insert(options.arguments.end(), {"--address", options_.address});
  options.environment = own_environment();
  options.stdout_to = ChildStream::Inherit;
  Subprocess program = Subprocess::spawn(options);
  bool told = false;
  while (true) {
    if (const auto status = program.try_wait()) {
      log_info("the " + options_.name + " ended: " + status->describe());
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPoll, [&] { return killing_ || (stopping_ && !told); });
    if (killing_) {
      return;  // destroying it kills and reaps it
    }
    if (stopping_ && !told) {
      told = true;
      program.send_signal(SIGTERM);
    }
  }
}

}  // namespace cubind
