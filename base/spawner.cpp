#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <variant>

#include "base/error.hpp"
#include "base/subprocess.hpp"

namespace cubind {
namespace {

// An Error in parts. The exception itself does not cross threads: its reference counts live in the C++
// library, which ThreadSanitizer does not see through.
struct SpawnFault {
  ErrorCode code;
  std::string where;
  std::string cause;
};
using SpawnOutcome = std::variant<Subprocess, SpawnFault>;

SpawnOutcome try_spawn(const SubprocessOptions& options) {
  try {
    return Subprocess::spawn(options);
  } catch (const Error& error) {
    return SpawnFault{error.code(), error.where(), error.cause()};
  } catch (const std::exception& error) {
    return SpawnFault{ErrorCode::Internal, options.program, error.what()};
  }
}

}  // namespace

struct Spawner::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::packaged_task<SpawnOutcome()>> tasks;  // guarded by mutex
  bool stopping = false;                                 // guarded by mutex
  std::thread thread;

  void run() {
    for (;;) {
      std::packaged_task<SpawnOutcome()> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || !tasks.empty(); });
        if (tasks.empty()) {
          return;
        }
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();
    }
  }
};

Spawner::Spawner() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Spawner::~Spawner() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

Subprocess Spawner::spawn(const SubprocessOptions& options) {
  std::packaged_task<SpawnOutcome()> task([&options] { return try_spawn(options); });
  std::future<SpawnOutcome> result = task.get_future();
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
  }
  state_->changed.notify_one();
  SpawnOutcome outcome = result.get();
  if (auto* fault = std::get_if<SpawnFault>(&outcome)) {
    throw Error(fault->code, std::move(fault->where), std::move(fault->cause));
  }
  return std::get<Subprocess>(std::move(outcome));
}

}  // namespace cubind
