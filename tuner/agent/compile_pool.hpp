#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/agent/compile_input.hpp"
#include "tuner/agent/compile_slots.hpp"
#include "tuner/agent/compiler_program.hpp"

namespace cubind {

/// What the pool's workers run with, and how many there are.
struct CompilePoolOptions {
  std::shared_ptr<const CompilerProgram> program;
  unsigned jobs = 1;             // processes, of which `slots` may let fewer compile
  unsigned background_jobs = 1;  // as many more, for CompilePriority::Background alone
  // By the wall clock; in the background twenty times as long.
  std::chrono::milliseconds deadline{30'000};        // of one compile
  std::chrono::milliseconds start_deadline{60'000};  // from exec to the worker's hello, cold disk included
  // Caps of one worker. Above the first (RLIMIT_AS) the compiler gets no more memory and says so or crashes;
  // the second is its resident set, which the parent watches, and is what the machine feels. 0: none.
  std::uint64_t address_space_bytes = std::uint64_t{4} << 30;
  std::uint64_t memory_bytes = std::uint64_t{3} << 30;
  std::uint64_t max_cubin_bytes = std::uint64_t{64} << 20;  // where the request names none
  std::uint64_t max_log_bytes = 256 << 10;                  // where the request names none
  unsigned compiles_per_worker = 1000;           // then a fresh one takes over: a compiler's leaks stay small
  std::chrono::milliseconds idle_time{300'000};  // without work, until a worker ends that is not kept
  int nice = 10;
  std::shared_ptr<CompileSlots> slots = {};  // shared with other pools; null: `jobs` alone counts
};

/// The end of one request. A refused option, an error of the compiler, a crash, a kill at the deadline and a
/// cubin above the cap are all Outcome COMPILE in `reply`, whose log names the cause; nothing of it touches
/// another request.
struct CompileResult {
  std::uint64_t id = 0;
  CompileInput input;  // as it was submitted
  v1::CompileReply reply;
  /// The worker failed, not the source: it was killed from outside, or no worker could be started. It says
  /// nothing about the configuration; `reply.log()` has the cause.
  bool worker_lost = false;
  bool timed_out = false;  // killed at the deadline
  /// At the deadline by the wall clock the worker had hardly computed: it had been stopped or starved.
  bool stood_still = false;
};

/// Of the pool so far.
struct CompilePoolCounts {
  std::uint64_t compiles = 0;     // finished requests
  std::uint64_t nvrtc_calls = 0;  // nvrtcCompileProgram calls, as the workers count them; but for their first
  std::uint64_t workers_started = 0;
  std::uint64_t workers_lost = 0;  // crashed, killed or timed out
};

/// N disposable `cubind-worker compile` processes, started by exec with an empty environment, niced, each in
/// a process group of its own. Requests of a higher priority go first, equal ones in the order of submission;
/// results come in the order in which they are ready. Those in the background have processes of their own, in
/// the idle class of the scheduler.
///
/// All members may be called from any thread. A worker is started when there is work for it, or ahead of it
/// where keep_ready() asked for that, and ends when it had none for `idle_time`.
class CompilePool {
 public:
  explicit CompilePool(CompilePoolOptions options);
  /// Drops waiting requests, kills running ones.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  /// Starts one worker and waits for its hello: NVRTC's version and its architectures. Throws
  /// Error(Unavailable) with the worker's output. The worker is kept for the first request.
  v1::Toolchain probe();

  /// Starts workers until there are so many, and does not wait for them. From then on so many are kept: one
  /// that ends with a request is replaced before another comes, and none ends for lack of work. Those in the
  /// background are not counted. Where a worker cannot be started none is kept any more.
  void keep_ready(unsigned workers);

  std::uint64_t submit(CompileInput input, CompilePriority priority = CompilePriority::Tuning);

  /// Gives a request that still waits another priority. One that runs in the background starts again: an
  /// ordinary user cannot take its process out of the idle class. Nothing happens for another that was begun,
  /// and for an unknown one.
  void raise(std::uint64_t id, CompilePriority priority);

  /// The next finished request; absent when `timeout` has passed or nothing is pending.
  std::optional<CompileResult> next(std::chrono::milliseconds timeout);
  /// The finished request with this id; results of others stay queued. Absent when `timeout` has passed, or
  /// the id is unknown, cancelled or taken.
  std::optional<CompileResult> wait(std::uint64_t id, std::chrono::milliseconds timeout);

  /// Drops one request: waiting, running (the worker is killed) or finished but not taken. Nothing happens
  /// for an unknown one.
  void cancel(std::uint64_t id);
  /// Drops every request, waiting, running (the worker is killed) or finished but not taken. No result comes
  /// for them.
  void cancel_all();

  /// Submitted and not yet taken by next() or wait().
  std::size_t pending() const;
  CompilePoolCounts counts() const;
  /// Process ids of the workers that live, for tests that kill one.
  std::vector<int> worker_pids() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cubind
