// The threads of a compile pool, one for each worker.
#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "tuner/agent/compile_pool_implementation.hpp"

namespace cubind {
namespace {

// How long a freed slot of another pool may stay unnoticed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

}  // namespace

// A completion may submit more work, so this thread is marked idle first; otherwise a worker would be started
// needlessly.
void CompilePool::Implementation::serve(CompileLane& lane) {
  std::optional<CompileProcess> process;
  while (std::optional<CompileLane::Job> job = next_job(lane, process)) {
    const std::optional<CompilePriority> slot = job->input ? std::optional(job->priority) : std::nullopt;
    Outcome outcome = work_on(*job, lane, process);
    rest(lane, process.has_value(), slot);
    tell(*job, lane, std::move(outcome));
  }
  if (process) {
    forget(process, false);
  }
}

CompilePool::Implementation::Outcome CompilePool::Implementation::work_on(
    const CompileLane::Job& job, const CompileLane& lane, std::optional<CompileProcess>& process) {
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
  if (job.input) {
    return {.answer = compile(job, process)};
  }
  return {.toolchain = process->toolchain()};
}

void CompilePool::Implementation::rest(CompileLane& lane, bool has_worker,
                                       std::optional<CompilePriority> slot) {
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
std::optional<CompileLane::Job> CompilePool::Implementation::next_job(
    CompileLane& lane, std::optional<CompileProcess>& process) {
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
    } else if (std::chrono::steady_clock::now() >= idle_until) {
      end_idle(lane, process, lock);
    } else {
      lane.work.wait_until(lock, idle_until);
    }
  }
  return std::nullopt;
}

// The first of the waiting has the highest priority: where there is no slot for it there is none for the
// others.
std::optional<CompileLane::Job> CompilePool::Implementation::take_waiting(CompileLane& lane) {
  if (lane.waiting.empty()) {
    return std::nullopt;
  }
  const CompileLane::Job& first = lane.waiting.begin()->second;
  if (first.input && options_.slots && !options_.slots->try_take(first.priority)) {
    return std::nullopt;
  }
  CompileLane::Job job = std::move(lane.waiting.extract(lane.waiting.begin()).mapped());
  if (lane.in_background) {
    run_in_background_[job.id] = CompilePriority::Background;
  }
  return job;
}

// Whatever comes meanwhile is left to others.
void CompilePool::Implementation::end_idle(CompileLane& lane, std::optional<CompileProcess>& process,
                                           std::unique_lock<std::mutex>& lock) {
  --lane.ready;
  ++lane.bare;
  lock.unlock();
  forget(process, false);
  lock.lock();
}

void CompilePool::Implementation::notify_all() {
  awaited_.work.notify_all();
  background_.work.notify_all();
}

CompileProcess::Compilation CompilePool::Implementation::compile(const CompileLane::Job& job,
                                                                 std::optional<CompileProcess>& process) {
  CompileProcess::Compilation answer = process->compile(*job.input, [&] { return is_withdrawn(job); });
  if (answer.ended || process->compiles() >= options_.compiles_per_worker) {
    forget(process, answer.ended && !answer.withdrawn && !answer.reply.worker_ends());
  }
  return answer;
}

void CompilePool::Implementation::tell(CompileLane::Job& job, CompileLane& lane, Outcome outcome) {
  CompileProcess::Compilation& answer = outcome.answer;
  if (outcome.no_worker) {
    if (!begin_anew_if_raised(job)) {
      tell_no_worker(job, lane, *outcome.no_worker);
    }
  } else if (answer.withdrawn) {
    begin_anew_if_raised(job);
  } else if (job.input) {
    finish({.id = job.id,
            .input = *std::move(job.input),
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

// False: its priority was not raised.
bool CompilePool::Implementation::begin_anew_if_raised(CompileLane::Job& job) {
  const std::lock_guard lock(mutex_);
  const auto run = run_in_background_.extract(job.id);
  if (run.empty() || run.mapped() == CompilePriority::Background || !pending_.contains(job.id)) {
    return false;
  }
  job.priority = run.mapped();
  enqueue(std::move(job));
  return true;
}

// The next request gets the workers' error and starts one again. None is kept any more.
void CompilePool::Implementation::tell_no_worker(CompileLane::Job& job, CompileLane& lane,
                                                 const std::string& cause) {
  if (!job.input && !job.probe) {
    const std::lock_guard lock(mutex_);
    lane.kept = 0;
    lane.work.notify_all();  // those that were kept end in time
    return;
  }
  if (!job.input) {
    v1::CompileWorkerHello hello;
    hello.set_error(cause);
    job.probe->set_value(std::move(hello));
    return;
  }
  CompileResult result{.id = job.id, .input = *std::move(job.input), .reply = {}, .worker_lost = true};
  result.reply.set_outcome(v1::COMPILE);
  result.reply.set_log(cause);
  finish(std::move(result));
}

void CompilePool::Implementation::finish(CompileResult result) {
  const std::lock_guard lock(mutex_);
  ++counts_.compiles;
  counts_.nvrtc_calls += result.reply.nvrtc_calls();
  run_in_background_.erase(result.id);
  if (pending_.contains(result.id)) {
    finished_.push_back(std::move(result));
    ready_.notify_all();
  }
}

void CompilePool::Implementation::forget(std::optional<CompileProcess>& process, bool lost) {
  {
    const std::lock_guard lock(mutex_);
    pids_.erase(process->pid());
    counts_.workers_lost += lost ? 1 : 0;
  }
  process.reset();
}

bool CompilePool::Implementation::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

// Its worker is to stop: the request is no longer wanted, or is wanted sooner than in the background. A probe
// never is: a thread waits for it.
bool CompilePool::Implementation::is_withdrawn(const CompileLane::Job& job) const {
  const std::lock_guard lock(mutex_);
  const auto running = run_in_background_.find(job.id);
  const bool raised = running != run_in_background_.end() && running->second != CompilePriority::Background;
  return job.input && (raised || !pending_.contains(job.id));
}

}  // namespace cubind
