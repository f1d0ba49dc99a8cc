// What a CompilePool consists of: its requests in compile_pool.cpp, its threads in compile_pool_threads.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tuner/agent/compile_lane.hpp"
#include "tuner/agent/compile_pool.hpp"
#include "tuner/agent/compile_process.hpp"

namespace cubind {

class CompilePool::Implementation {
 public:
  explicit Implementation(CompilePoolOptions options);
  ~Implementation();
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  // As the pool's.
  v1::Toolchain probe();
  void keep_ready(unsigned workers);
  std::uint64_t submit(CompileInput input, CompilePriority priority);
  void raise(std::uint64_t id, CompilePriority priority);
  std::optional<CompileResult> next(std::chrono::milliseconds timeout);
  std::optional<CompileResult> wait(std::uint64_t id, std::chrono::milliseconds timeout);
  void cancel(std::uint64_t id);
  void cancel_all();
  std::size_t pending() const;
  CompilePoolCounts counts() const;
  std::vector<int> worker_pids() const;

 private:
  // What became of a job.
  struct Outcome {
    std::optional<std::string> no_worker = {};  // the reason
    CompileProcess::Compilation answer = {};    // to a request
    v1::Toolchain toolchain = {};               // of the worker
  };

  // ---- requests, with mutex_ held ----

  void enqueue(CompileLane::Job job);
  CompileResult take(const std::deque<CompileResult>::iterator& position);
  void drop_all();

  // ---- the threads, one for each worker ----

  void serve(CompileLane& lane);
  std::optional<CompileLane::Job> next_job(CompileLane& lane, std::optional<CompileProcess>& process);
  std::optional<CompileLane::Job> take_waiting(CompileLane& lane);  // with mutex_ held
  void end_idle(CompileLane& lane, std::optional<CompileProcess>& process,
                std::unique_lock<std::mutex>& lock);
  Outcome work_on(const CompileLane::Job& job, const CompileLane& lane,
                  std::optional<CompileProcess>& process);
  CompileProcess::Compilation compile(const CompileLane::Job& job, std::optional<CompileProcess>& process);
  void rest(CompileLane& lane, bool has_worker, std::optional<CompilePriority> slot);
  void tell(CompileLane::Job& job, CompileLane& lane, Outcome outcome);
  void tell_no_worker(CompileLane::Job& job, CompileLane& lane, const std::string& cause);
  bool begin_anew_if_raised(CompileLane::Job& job);
  void finish(CompileResult result);
  void forget(std::optional<CompileProcess>& process, bool lost);
  void notify_all();
  bool is_stopping() const;
  bool is_withdrawn(const CompileLane::Job& job) const;

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

}  // namespace cubind
