#include "server/strand.hpp"

#include <exception>
#include <future>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {

Strand::Strand() : thread_([this] { loop(); }) {}

Strand::~Strand() { close(); }

void Strand::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool Strand::post(Function function) {
  Task task{std::move(function), current_request()};
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      return false;
    }
    ready_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void Strand::post_at(Time time, Function function) {
  {
    const std::lock_guard lock(mutex_);
    later_.emplace(time, std::move(function));
  }
  changed_.notify_one();
}

void Strand::run(const Function& function) {
  std::promise<void> done;
  const bool posted = post([&] {
    try {
      function();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  if (!posted) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
  done.get_future().get();
}

Strand::Task Strand::take() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!later_.empty() && later_.begin()->first <= std::chrono::steady_clock::now()) {
      ready_.push_back({std::move(later_.begin()->second), nullptr});
      later_.erase(later_.begin());
    }
    if (!ready_.empty()) {
      Task task = std::move(ready_.front());
      ready_.pop_front();
      return task;
    }
    if (stopping_) {
      return {};
    }
    if (later_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, later_.begin()->first);
    }
  }
}

void Strand::loop() {
  for (Task task = take(); task.function; task = take()) {
    const RequestScope scope(task.request);
    try {
      task.function();
    } catch (const std::exception& fault) {
      log_error(std::string("a function of the job thread failed: ") + fault.what());
    }
  }
}

}  // namespace cubind
