#include "server/store/writer_thread.hpp"

#include <exception>
#include <utility>

#include "base/log.hpp"

namespace cubind::store {

WriterThread::WriterThread(Engine& engine) : engine_(engine), thread_([this] { run(); }) {}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WriterThread::write(const std::function<void(StoreWriter&)>& body) {
  enqueue({Kind::Transaction, body, true, {}}).get();
}

void WriterThread::write_behind(std::function<void(StoreWriter&)> body) {
  enqueue({Kind::Transaction, std::move(body), false, {}});
}

std::optional<std::string> WriterThread::read_only_reason() const {
  const std::lock_guard lock(mutex_);
  return read_only_reason_;
}

bool WriterThread::try_recover() {
  if (!read_only_reason()) {
    return true;
  }
  try {
    enqueue({Kind::Probe, {}, true, {}}).get();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void WriterThread::probe_behind() { enqueue({Kind::Probe, {}, false, {}}); }

std::future<void> WriterThread::enqueue(Task task) {
  std::future<void> done = task.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

void WriterThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run(task);
    lock.lock();
  }
}

void WriterThread::run(Task& task) {
  try {
    if (task.kind == Kind::Probe) {
      engine_.probe();
    } else {
      engine_.write(task.body);
      ++commits_;
    }
    note_success();
    task.done.set_value();
  } catch (const std::exception& fault) {
    if (const auto* error = dynamic_cast<const Error*>(&fault)) {
      note_failure(*error);
    }
    if (!task.awaited && task.kind == Kind::Transaction) {
      log_warning(std::string("store: a write behind an answer failed: ") + fault.what());
    }
    task.done.set_exception(std::current_exception());
  }
}

void WriterThread::note_success() {
  const std::lock_guard lock(mutex_);
  if (read_only_reason_) {
    engine_.set_read_only(false);
    log_info("store: takes writes again");
  }
  read_only_reason_.reset();
}

void WriterThread::note_failure(const Error& error) {
  const bool disk = error.where() == "store" &&
                    (error.code() == ErrorCode::ResourceExhausted || error.code() == ErrorCode::Unavailable);
  if (!disk) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!read_only_reason_) {
    engine_.set_read_only(true);
    log_error(std::string("store: read-only until a write succeeds: ") + error.what());
  }
  read_only_reason_ = error.what();
}

}  // namespace cubind::store
