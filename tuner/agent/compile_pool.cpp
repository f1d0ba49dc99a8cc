#include "tuner/agent/compile_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "tuner/agent/compile_process.hpp"

namespace cubind {
namespace {

// How long a freed slot of another pool may stay unnoticed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

// A request that waits, or (without one) a probe for a worker's hello.
struct Job {
  std::uint64_t id = 0;
  CompilePriority priority = CompilePriority::Tuning;
  std::optional<v1::CompileRequest> request;
  std::shared_ptr<std::promise<v1::CompileWorkerHello>> probe;
};

// Higher priorities first, then the order of submission.
struct JobOrder {
  int negative_priority = 0;
  std::uint64_t id = 0;
  auto operator<=>(const JobOrder&) const = default;
};

}  // namespace

class CompilePool::Implementation {
 public:
  explicit Implementation(CompilePoolOptions options) : options_(std::move(options)) {
    for (unsigned i = 0; i < std::max(options_.jobs, 1U); ++i) {
      threads_.emplace_back([this] { serve(); });
    }
  }

  ~Implementation() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      drop_all();
    }
    work_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  v1::Toolchain probe() {
    auto promise = std::make_shared<std::promise<v1::CompileWorkerHello>>();
    std::future<v1::CompileWorkerHello> future = promise->get_future();
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t id = ++last_id_;
      waiting_.emplace(JobOrder{std::numeric_limits<int>::min(), id},
                       Job{id, CompilePriority::Question, {}, promise});
    }
    work_.notify_one();
    const v1::CompileWorkerHello hello = future.get();
    if (!hello.error().empty()) {
      throw Error(ErrorCode::Unavailable, "", hello.error());
    }
    return hello.toolchain();
  }

  std::uint64_t submit(v1::CompileRequest request, CompilePriority priority) {
    if (request.max_cubin_bytes() == 0) {
      request.set_max_cubin_bytes(options_.max_cubin_bytes);
    }
    if (request.max_log_bytes() == 0) {
      request.set_max_log_bytes(options_.max_log_bytes);
    }
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++last_id_;
    waiting_.emplace(JobOrder{-static_cast<int>(priority), id},
                     Job{id, priority, std::move(request), nullptr});
    pending_.insert(id);
    work_.notify_one();
    return id;
  }

  void raise(std::uint64_t id, CompilePriority priority) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(waiting_, [&](const auto& entry) {
      return entry.second.id == id && entry.second.request.has_value();
    });
    if (found == waiting_.end()) {
      return;
    }
    auto node = waiting_.extract(found);
    node.key().negative_priority = -static_cast<int>(priority);
    node.mapped().priority = priority;
    waiting_.insert(std::move(node));
    work_.notify_one();
  }

  std::optional<CompileResult> next(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, timeout, [&] { return !finished_.empty() || pending_.empty(); });
    return finished_.empty() ? std::nullopt : std::optional(take(finished_.begin()));
  }

  std::optional<CompileResult> wait(std::uint64_t id, std::chrono::milliseconds timeout) {
    const auto has_id = [&](const CompileResult& result) { return result.id == id; };
    std::unique_lock lock(mutex_);
    auto found = finished_.end();
    ready_.wait_for(lock, timeout, [&] {
      found = std::ranges::find_if(finished_, has_id);
      return found != finished_.end() || !pending_.contains(id);
    });
    return found == finished_.end() ? std::nullopt : std::optional(take(found));
  }

  void cancel(std::uint64_t id) {
    const auto has_id = [&](const auto& entry) {
      return entry.second.id == id && entry.second.request.has_value();
    };
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, has_id);
    std::erase_if(finished_, [&](const CompileResult& result) { return result.id == id; });
    pending_.erase(id);
    ready_.notify_all();
  }

  void cancel_all() {
    const std::lock_guard lock(mutex_);
    drop_all();
  }

  std::size_t pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
  }

  CompilePoolCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  std::vector<int> worker_pids() const {
    const std::lock_guard lock(mutex_);
    return {pids_.begin(), pids_.end()};
  }

 private:
  // ---- under the lock ----

  CompileResult take(const std::deque<CompileResult>::iterator& position) {
    CompileResult result = std::move(*position);
    finished_.erase(position);
    pending_.erase(result.id);
    ready_.notify_all();  // waiters whose last worker others took
    return result;
  }

  // Probes are kept: somebody waits for each.
  void drop_all() {
    std::erase_if(waiting_, [](const auto& entry) { return entry.second.request.has_value(); });
    finished_.clear();
    pending_.clear();
    ready_.notify_all();
  }

  // ---- the threads, one for each worker ----

  void serve() {
    std::optional<CompileProcess> process;
    while (std::optional<Job> job = next_job()) {
      const TakenSlot slot(*this, job->request.has_value());
      if (process && !process->is_usable()) {
        forget(process, true);
      }
      try {
        if (!process) {
          process.emplace(options_, [&] { return is_stopping() || is_withdrawn(*job); });
          const std::lock_guard lock(mutex_);
          pids_.insert(process->pid());
          ++counts_.workers_started;
        }
      } catch (const std::exception& error) {
        report_no_worker(*job, error.what());
        continue;
      }
      if (job->request) {
        compile(*job, process);
      } else {
        v1::CompileWorkerHello hello;
        *hello.mutable_toolchain() = process->toolchain();
        job->probe->set_value(std::move(hello));
      }
    }
    if (process) {
      forget(process, false);
    }
  }

  // Absent when the pool ends and no probe is left. The first of the waiting has the highest priority: where
  // there is no slot for it there is none for the others.
  std::optional<Job> next_job() {
    std::unique_lock lock(mutex_);
    while (!stopping_ || !waiting_.empty()) {
      if (waiting_.empty()) {
        work_.wait(lock);
        continue;
      }
      const Job& first = waiting_.begin()->second;
      if (!first.request || !options_.slots || options_.slots->try_take(first.priority)) {
        return std::move(waiting_.extract(waiting_.begin()).mapped());
      }
      work_.wait_for(lock, kBetweenLooks);
    }
    return std::nullopt;
  }

  // Gives the slot of a request back.
  class TakenSlot {
   public:
    TakenSlot(Implementation& pool, bool is_request)
        : pool_(pool), slots_(is_request ? pool.options_.slots.get() : nullptr) {}
    ~TakenSlot() {
      if (slots_) {
        slots_->give();
        pool_.work_.notify_all();
      }
    }
    TakenSlot(const TakenSlot&) = delete;
    TakenSlot& operator=(const TakenSlot&) = delete;

   private:
    Implementation& pool_;
    CompileSlots* const slots_;
  };

  void compile(const Job& job, std::optional<CompileProcess>& process) {
    CompileProcess::Compilation answer = process->compile(*job.request, [&] { return !is_pending(job.id); });
    if (answer.ended || process->compiles() >= options_.compiles_per_worker) {
      forget(process, answer.ended && !answer.withdrawn && !answer.reply.worker_ends());
    }
    if (!answer.withdrawn) {
      finish({.id = job.id,
              .reply = std::move(answer.reply),
              .worker_lost = answer.worker_lost,
              .timed_out = answer.timed_out,
              .stood_still = answer.stood_still});
    }
  }

  void report_no_worker(const Job& job, const std::string& cause) {
    if (!job.request) {
      v1::CompileWorkerHello hello;
      hello.set_error(cause);
      job.probe->set_value(std::move(hello));
      return;
    }
    CompileResult result{.id = job.id, .reply = {}, .worker_lost = true};
    result.reply.set_outcome(v1::COMPILE);
    result.reply.set_log(cause);
    finish(std::move(result));
  }

  void finish(CompileResult result) {
    const std::lock_guard lock(mutex_);
    ++counts_.compiles;
    counts_.nvrtc_calls += result.reply.nvrtc_calls();
    if (pending_.contains(result.id)) {
      finished_.push_back(std::move(result));
      ready_.notify_all();
    }
  }

  void forget(std::optional<CompileProcess>& process, bool lost) {
    {
      const std::lock_guard lock(mutex_);
      pids_.erase(process->pid());
      counts_.workers_lost += lost ? 1 : 0;
    }
    process.reset();
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  // A probe never is: somebody waits for it.
  bool is_withdrawn(const Job& job) const { return job.request && !is_pending(job.id); }

  bool is_pending(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    return pending_.contains(id);
  }

  const CompilePoolOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable work_;   // waiting_ or stopping_ changed
  std::condition_variable ready_;  // finished_ or pending_ changed

  // All guarded by mutex_.
  std::map<JobOrder, Job> waiting_;
  std::deque<CompileResult> finished_;
  std::set<std::uint64_t> pending_;  // submitted, neither taken nor cancelled
  std::set<int> pids_;
  CompilePoolCounts counts_;
  std::uint64_t last_id_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

CompilePool::CompilePool(CompilePoolOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
CompilePool::~CompilePool() = default;

v1::Toolchain CompilePool::probe() { return implementation_->probe(); }
std::uint64_t CompilePool::submit(v1::CompileRequest request, CompilePriority priority) {
  return implementation_->submit(std::move(request), priority);
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
