#include "tuner/agent/compile_pool.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "tuner/agent/compile_pool_implementation.hpp"

namespace cubind {

CompilePool::Implementation::Implementation(CompilePoolOptions options) : options_(std::move(options)) {
  awaited_.threads = awaited_.bare = std::max(options_.jobs, 1U);
  background_.threads = background_.bare = std::max(options_.background_jobs, 1U);
  for (CompileLane* lane : {&awaited_, &background_}) {
    for (unsigned i = 0; i < lane->threads; ++i) {
      threads_.emplace_back([this, lane] { serve(*lane); });
    }
  }
}

CompilePool::Implementation::~Implementation() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    drop_all();
  }
  notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

v1::Toolchain CompilePool::Implementation::probe() {
  auto promise = std::make_shared<std::promise<v1::CompileWorkerHello>>();
  std::future<v1::CompileWorkerHello> future = promise->get_future();
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++last_id_;
    awaited_.waiting.emplace(CompileLane::Order{std::numeric_limits<int>::min(), id},
                             CompileLane::Job{id, CompilePriority::Question, {}, promise});
  }
  awaited_.work.notify_all();
  const v1::CompileWorkerHello hello = future.get();
  if (!hello.error().empty()) {
    throw Error(ErrorCode::Unavailable, "", hello.error());
  }
  return hello.toolchain();
}

void CompilePool::Implementation::keep_ready(unsigned workers) {
  {
    const std::lock_guard lock(mutex_);
    awaited_.kept = std::min(workers, awaited_.threads);
  }
  awaited_.work.notify_all();
}

std::uint64_t CompilePool::Implementation::submit(CompileInput input, CompilePriority priority) {
  v1::CompileRequest& request = input.request;
  if (request.max_cubin_bytes() == 0) {
    request.set_max_cubin_bytes(options_.max_cubin_bytes);
  }
  if (request.max_log_bytes() == 0) {
    request.set_max_log_bytes(options_.max_log_bytes);
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++last_id_;
  pending_.insert(id);
  enqueue({id, priority, std::move(input), nullptr});
  return id;
}

void CompilePool::Implementation::raise(std::uint64_t id, CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  for (CompileLane* lane : {&awaited_, &background_}) {
    const auto found = std::ranges::find_if(lane->waiting, [&](const auto& entry) {
      return entry.second.id == id && entry.second.input.has_value();
    });
    if (found != lane->waiting.end()) {
      CompileLane::Job job = std::move(lane->waiting.extract(found).mapped());
      job.priority = priority;
      return enqueue(std::move(job));
    }
  }
  if (const auto running = run_in_background_.find(id);
      running != run_in_background_.end() && priority > CompilePriority::Background) {
    running->second = priority;
  }
}

std::optional<CompileResult> CompilePool::Implementation::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  ready_.wait_for(lock, timeout, [&] { return !finished_.empty() || pending_.empty(); });
  return finished_.empty() ? std::nullopt : std::optional(take(finished_.begin()));
}

std::optional<CompileResult> CompilePool::Implementation::wait(std::uint64_t id,
                                                               std::chrono::milliseconds timeout) {
  const auto has_id = [&](const CompileResult& result) { return result.id == id; };
  std::unique_lock lock(mutex_);
  auto found = finished_.end();
  ready_.wait_for(lock, timeout, [&] {
    found = std::ranges::find_if(finished_, has_id);
    return found != finished_.end() || !pending_.contains(id);
  });
  return found == finished_.end() ? std::nullopt : std::optional(take(found));
}

void CompilePool::Implementation::cancel(std::uint64_t id) {
  const auto has_id = [&](const auto& entry) {
    return entry.second.id == id && entry.second.input.has_value();
  };
  const std::lock_guard lock(mutex_);
  std::erase_if(awaited_.waiting, has_id);
  std::erase_if(background_.waiting, has_id);
  std::erase_if(finished_, [&](const CompileResult& result) { return result.id == id; });
  pending_.erase(id);
  ready_.notify_all();
}

void CompilePool::Implementation::cancel_all() {
  const std::lock_guard lock(mutex_);
  drop_all();
}

std::size_t CompilePool::Implementation::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

CompilePoolCounts CompilePool::Implementation::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<int> CompilePool::Implementation::worker_pids() const {
  const std::lock_guard lock(mutex_);
  return {pids_.begin(), pids_.end()};
}

void CompilePool::Implementation::enqueue(CompileLane::Job job) {
  CompileLane& lane = job.priority == CompilePriority::Background ? background_ : awaited_;
  const CompileLane::Order order{-static_cast<int>(job.priority), job.id};
  lane.waiting.emplace(order, std::move(job));
  lane.work.notify_all();
}

CompileResult CompilePool::Implementation::take(const std::deque<CompileResult>::iterator& position) {
  CompileResult result = std::move(*position);
  finished_.erase(position);
  pending_.erase(result.id);
  ready_.notify_all();  // waiters whose last worker others took
  return result;
}

// Probes are kept: a thread waits for each.
void CompilePool::Implementation::drop_all() {
  const auto is_request = [](const auto& entry) { return entry.second.input.has_value(); };
  std::erase_if(awaited_.waiting, is_request);
  std::erase_if(background_.waiting, is_request);
  finished_.clear();
  pending_.clear();
  ready_.notify_all();
}

CompilePool::CompilePool(CompilePoolOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
CompilePool::~CompilePool() = default;

v1::Toolchain CompilePool::probe() { return implementation_->probe(); }
void CompilePool::keep_ready(unsigned workers) { implementation_->keep_ready(workers); }
std::uint64_t CompilePool::submit(CompileInput input, CompilePriority priority) {
  return implementation_->submit(std::move(input), priority);
}
void CompilePool::raise(std::uint64_t id, CompilePriority priority) { implementation_->raise(id, priority); }
std::optional<CompileResult> CompilePool::next(std::chrono::milliseconds timeout) {
  return implementation_->next(timeout);
}
std::optional<CompileResult> CompilePool::wait(std::uint64_t id, std::chrono::milliseconds timeout) {
  return implementation_->wait(id, timeout);
}
void CompilePool::cancel(std::uint64_t id) { implementation_->cancel(id); }
void CompilePool::cancel_all() { implementation_->cancel_all(); }
std::size_t CompilePool::pending() const { return implementation_->pending(); }
CompilePoolCounts CompilePool::counts() const { return implementation_->counts(); }
std::vector<int> CompilePool::worker_pids() const { return implementation_->worker_pids(); }

}  // namespace cubind
