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
#include "tuner/agent/compile_lane.hpp"
#include "tuner/agent/compile_process.hpp"

namespace cubind {
namespace {

// How long a freed slot of another pool may stay unnoticed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

}  // namespace

class CompilePool::Implementation {
 public:
  explicit Implementation(CompilePoolOptions options) : options_(std::move(options)) {
    awaited_.threads = awaited_.bare = std::max(options_.jobs, 1U);
    background_.threads = background_.bare = std::max(options_.background_jobs, 1U);
    for (CompileLane* lane : {&awaited_, &background_}) {
      for (unsigned i = 0; i < lane->threads; ++i) {
        threads_.emplace_back([this, lane] { serve(*lane); });
      }
    }
  }

  ~Implementation() {
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

  v1::Toolchain probe() {
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

  void keep_ready(unsigned workers) {
    {
      const std::lock_guard lock(mutex_);
      awaited_.kept = std::min(workers, awaited_.threads);
    }
    awaited_.work.notify_all();
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
    pending_.insert(id);
    enqueue({id, priority, std::move(request), nullptr});
    return id;
  }

  void raise(std::uint64_t id, CompilePriority priority) {
    const std::lock_guard lock(mutex_);
    for (CompileLane* lane : {&awaited_, &background_}) {
      const auto found = std::ranges::find_if(lane->waiting, [&](const auto& entry) {
        return entry.second.id == id && entry.second.request.has_value();
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
    std::erase_if(awaited_.waiting, has_id);
    std::erase_if(background_.waiting, has_id);
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

  void enqueue(CompileLane::Job job) {
    CompileLane& lane = job.priority == CompilePriority::Background ? background_ : awaited_;
    const CompileLane::Order order{-static_cast<int>(job.priority), job.id};
    lane.waiting.emplace(order, std::move(job));
    lane.work.notify_all();
  }

  // The first of the waiting has the highest priority: where there is no slot for it there is none for the
  // others.
  std::optional<CompileLane::Job> take_waiting(CompileLane& lane) {
    if (lane.waiting.empty()) {
      return std::nullopt;
    }
    const CompileLane::Job& first = lane.waiting.begin()->second;
    if (first.request && options_.slots && !options_.slots->try_take(first.priority)) {
      return std::nullopt;
    }
    CompileLane::Job job = std::move(lane.waiting.extract(lane.waiting.begin()).mapped());
    if (lane.in_background) {
      run_in_background_[job.id] = CompilePriority::Background;
    }
    return job;
  }

  CompileResult take(const std::deque<CompileResult>::iterator& position) {
    CompileResult result = std::move(*position);
    finished_.erase(position);
    pending_.erase(result.id);
    ready_.notify_all();  // waiters whose last worker others took
    return result;
  }

  // Probes are kept: somebody waits for each.
  void drop_all() {
    const auto is_request = [](const auto& entry) { return entry.second.request.has_value(); };
    std::erase_if(awaited_.waiting, is_request);
    std::erase_if(background_.waiting, is_request);
    finished_.clear();
    pending_.clear();
    ready_.notify_all();
  }

  // ---- the threads, one for each worker ----

  // What became of a job.
  struct Outcome {
    std::optional<std::string> no_worker = {};  // the reason
    CompileProcess::Compilation answer = {};    // to a request
    v1::Toolchain toolchain = {};               // of the worker
  };

  // Whoever is told of an outcome may ask for more at once: by then the thread counts as one that waits, so
  // that no other starts a worker for it.
  void serve(CompileLane& lane) {
    std::optional<CompileProcess> process;
    while (std::optional<CompileLane::Job> job = next_job(lane, process)) {
      const std::optional<CompilePriority> slot = job->request ? std::optional(job->priority) : std::nullopt;
      Outcome outcome = work_on(*job, lane, process);
      rest(lane, process.has_value(), slot);
      tell(*job, lane, std::move(outcome));
    }
    if (process) {
      forget(process, false);
    }
  }

  Outcome work_on(const CompileLane::Job& job, const CompileLane& lane,
                  std::optional<CompileProcess>& process) {
    if (process && !process->is_usable()) {
      forget(process, true);
    }
    try {
      if (!process) {
        process.emplace(options_, lane.in_background, [&] { return is_stopping() || is_withdrawn(job); });
        const std::lock_guard lock(mutex_);
        pids_.insert(process->pid());
        ++counts_.workers_started;
      }
    } catch (const std::exception& error) {
      return {.no_worker = error.what()};
    }
    if (job.request) {
      return {.answer = compile(job, process)};
    }
    return {.toolchain = process->toolchain()};
  }

  void rest(CompileLane& lane, bool has_worker, std::optional<CompilePriority> slot) {
    {
      const std::lock_guard lock(mutex_);
      ++(has_worker ? lane.ready : lane.bare);
    }
    if (slot && options_.slots) {
      options_.slots->give(*slot);
    }
    notify_all();
  }

  // Absent when the pool ends and no probe is left. The thread is counted as one that waits, and no more when
  // it has a job. One without a worker leaves requests to those that have one.
  std::optional<CompileLane::Job> next_job(CompileLane& lane, std::optional<CompileProcess>& process) {
    const auto idle_until = std::chrono::steady_clock::now() + options_.idle_time;
    std::unique_lock lock(mutex_);
    while (!stopping_ || !lane.waiting.empty()) {
      std::optional<CompileLane::Job> job = process || lane.ready == 0 ? take_waiting(lane) : std::nullopt;
      if (!job && !process && !stopping_ && lane.workers() < lane.kept) {
        job.emplace();
      }
      if (job) {
        --(process ? lane.ready : lane.bare);
        lane.work.notify_all();  // those without a worker look at what is left
        return job;
      }
      if (!lane.waiting.empty()) {
        lane.work.wait_for(lock, kBetweenLooks);
      } else if (!process || lane.workers() <= lane.kept) {
        lane.work.wait(lock);
      } else if (lane.work.wait_until(lock, idle_until) == std::cv_status::timeout && lane.waiting.empty()) {
        end_idle(lane, process, lock);
      }
    }
    return std::nullopt;
  }

  // Whatever comes meanwhile is left to others.
  void end_idle(CompileLane& lane, std::optional<CompileProcess>& process,
                std::unique_lock<std::mutex>& lock) {
    --lane.ready;
    ++lane.bare;
    lock.unlock();
    forget(process, false);
    lock.lock();
  }

  void notify_all() {
    awaited_.work.notify_all();
    background_.work.notify_all();
  }

  CompileProcess::Compilation compile(const CompileLane::Job& job, std::optional<CompileProcess>& process) {
    CompileProcess::Compilation answer = process->compile(*job.request, [&] { return is_withdrawn(job); });
    if (answer.ended || process->compiles() >= options_.compiles_per_worker) {
      forget(process, answer.ended && !answer.withdrawn && !answer.reply.worker_ends());
    }
    return answer;
  }

  void tell(CompileLane::Job& job, CompileLane& lane, Outcome outcome) {
    CompileProcess::Compilation& answer = outcome.answer;
    if (outcome.no_worker) {
      if (!begin_anew_if_raised(job)) {
        tell_no_worker(job, lane, *outcome.no_worker);
      }
    } else if (answer.withdrawn) {
      begin_anew_if_raised(job);
    } else if (job.request) {
      finish({.id = job.id,
              .request = *std::move(job.request),
              .reply = std::move(answer.reply),
              .worker_lost = answer.worker_lost,
              .timed_out = answer.timed_out,
              .stood_still = answer.stood_still});
    } else if (job.probe) {
      v1::CompileWorkerHello hello;
      *hello.mutable_toolchain() = std::move(outcome.toolchain);
      job.probe->set_value(std::move(hello));
    }
  }

  // False: nobody has raised it.
  bool begin_anew_if_raised(CompileLane::Job& job) {
    const std::lock_guard lock(mutex_);
    const auto run = run_in_background_.extract(job.id);
    if (run.empty() || run.mapped() == CompilePriority::Background || !pending_.contains(job.id)) {
      return false;
    }
    job.priority = run.mapped();
    enqueue(std::move(job));
    return true;
  }

  // What ails the workers is told to the next request, which starts one anew. None is kept any more.
  void tell_no_worker(CompileLane::Job& job, CompileLane& lane, const std::string& cause) {
    if (!job.request && !job.probe) {
      const std::lock_guard lock(mutex_);
      lane.kept = 0;
      return;
    }
    if (!job.request) {
      v1::CompileWorkerHello hello;
      hello.set_error(cause);
      job.probe->set_value(std::move(hello));
      return;
    }
    CompileResult result{.id = job.id, .request = *std::move(job.request), .reply = {}, .worker_lost = true};
    result.reply.set_outcome(v1::COMPILE);
    result.reply.set_log(cause);
    finish(std::move(result));
  }

  void finish(CompileResult result) {
    const std::lock_guard lock(mutex_);
    ++counts_.compiles;
    counts_.nvrtc_calls += result.reply.nvrtc_calls();
    run_in_background_.erase(result.id);
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

  // Its worker is to stop: nobody wants the request any more, or it is wanted sooner than in the background.
  // A probe never is: somebody waits for it.
  bool is_withdrawn(const CompileLane::Job& job) const {
    const std::lock_guard lock(mutex_);
    const auto running = run_in_background_.find(job.id);
    const bool raised = running != run_in_background_.end() && running->second != CompilePriority::Background;
    return job.request && (raised || !pending_.contains(job.id));
  }

  const CompilePoolOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;  // finished_ or pending_ changed

  // All guarded by mutex_.
  CompileLane awaited_, background_{.in_background = true};
  std::map<std::uint64_t, CompilePriority> run_in_background_;  // with the priority that they have by now
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
void CompilePool::keep_ready(unsigned workers) { implementation_->keep_ready(workers); }
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
