#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/subprocess.hpp"

namespace cubind {

struct Spawner::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::packaged_task<Subprocess()>> tasks;  // guarded by mutex
  bool stopping = false;                               // guarded by mutex
  std::thread thread;

  void run() {
    for (;;) {
      std::packaged_task<Subprocess()> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || !tasks.empty(); });
        if (tasks.empty()) {
          return;
        }
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();  // what spawn throws travels to the caller in the future
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
  std::packaged_task<Subprocess()> task([&options] { return Subprocess::spawn(options); });
  std::future<Subprocess> result = task.get_future();
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
  }
  state_->changed.notify_one();
  return result.get();
}

}  // namespace cubind
