#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tuner/agent/compile/compile_process.hpp"
#include "tuner/agent/compile/compiler.hpp"

namespace cubind {

struct CompileServiceOptions : CompileWorkerOptions {
  std::shared_ptr<CompileSlots> slots;           // never null; shared with the services of other toolchains
  unsigned compiles_per_worker = 1000;           // then a fresh one takes over: a compiler's leaks stay small
  std::chrono::milliseconds idle_time{300'000};  // without work, until a worker ends that is not kept
  std::size_t kept_bytes = std::size_t{256} << 20;  // of results that no job wants
};

/// The real Compiler: the results that are kept, the requests that wait, and the disposable worker processes
/// that compile them.
///
/// Requests of a higher priority go first, equal ones in the order of submission. Those in the background
/// have workers of their own, in the idle class of the scheduler. A worker is started when there is work for
/// it, or ahead of it where keep_ready() asked for that, and ends when it had none for `idle_time`.
///
/// A refused option, an error of the compiler, a crash, a kill at the deadline and a cubin above the cap are
/// all Outcome COMPILE, whose log names the cause; nothing of it touches another request. A request whose
/// worker was killed from outside is repeated, and one whose worker stood still at the deadline once: that
/// says nothing about the source. Results are kept, the last used ones up to a number of bytes; what ended
/// without the compiler's word goes to the jobs that wait for it and is not kept.
class CompileService final : public Compiler {
 public:
  explicit CompileService(CompileServiceOptions options);
  /// Drops waiting requests, kills running ones.
  ~CompileService() override;
  CompileService(const CompileService&) = delete;
  CompileService& operator=(const CompileService&) = delete;

  /// What a worker says of its compiler in its hello. Starts one where none has been started yet; it waits
  /// for the first request. Throws Error(Unavailable) with the worker's output.
  v1::Toolchain probe();

  /// Starts workers until there are so many, and does not wait for them. From then on so many are kept: one
  /// that ends with a request is replaced before another comes, and none ends for lack of work. Those in the
  /// background are not counted. Where a worker cannot be started none is kept any more.
  void keep_ready(unsigned workers);

  void want(const Digest& key, CompilePriority priority, const std::function<CompileInput()>& input) override;
  void give_up(const Digest& key) override;
  /// One that runs in the background starts again: an ordinary user cannot take its process out of the idle
  /// class. Nothing happens for another that runs.
  void raise(const Digest& key, CompilePriority priority) override;
  ResultPtr wait(const Digest& key, std::chrono::milliseconds timeout) override;
  std::uint32_t take_nvrtc_calls(const Digest& key) override;
  ResultPtr find(const Digest& key) override;

 private:
  /// One key, from its first want until it is forgotten. A thread that compiles it shares it.
  struct Compile {
    Digest key;
    std::uint64_t number = 0;  // in the order of submission
    CompileInput input;        // until there is a result
    CompilePriority priority = CompilePriority::Tuning;
    std::size_t wants = 0;
    unsigned losses = 0;       // of its workers
    bool stood_still = false;  // one of them did
    std::string failure;       // why it is not compiled
    ResultPtr result;
    std::uint32_t nvrtc_calls = 0;     // not yet taken
    std::list<Digest>::iterator used;  // where there is a result
  };
  using CompilePtr = std::shared_ptr<Compile>;

  /// Higher priorities first, then the order of submission.
  struct Order {
    int negative_priority = 0;
    std::uint64_t number = 0;
    auto operator<=>(const Order&) const = default;
  };

  /// The requests that wait for workers of one kind, and the threads, one for each worker, that wait for
  /// requests.
  struct Lane {
    bool in_background = false;
    unsigned threads = 0;
    unsigned kept = 0;   // so many threads have a worker also without a request
    unsigned ready = 0;  // threads that have a worker and nothing to do
    unsigned bare = 0;   // threads that have neither
    std::map<Order, CompilePtr> waiting = {};
    std::condition_variable work = {};  // any of these or the service's end changed

    /// Those that live or are being started.
    unsigned workers() const { return threads - bare; }
  };

  struct Outcome {
    std::optional<v1::CompileWorkerHello> hello = {};  // of a worker that was started
    CompileProcess::Compilation answer = {};
  };
  using Lock = std::unique_lock<std::mutex>;

  // With mutex_ held; work_on() lets go of it meanwhile.
  Lane& lane_of(const Compile& compile);
  void enqueue(CompilePtr compile);
  void raise(Compile& compile, CompilePriority priority);
  CompilePtr take(Lane& lane, bool has_worker);
  void work_on(const CompilePtr& compile, Lane& lane, std::optional<CompileProcess>& process, Lock& lock);
  static bool is_raised(const Compile& compile, const Lane& lane);
  void settle(const CompilePtr& compile, const Lane& lane, CompileProcess::Compilation answer);
  void forget_old();
  std::list<Digest>::iterator forget(std::list<Digest>::iterator used);

  // Without it.
  void serve(Lane& lane);
  Outcome run(const CompilePtr& compile, const Lane& lane, std::optional<CompileProcess>& process);

  const CompileServiceOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;  // a result, a failure or a hello has come

  // All guarded by mutex_.
  std::map<Digest, CompilePtr> compiles_;
  std::list<Digest> used_;  // last used first
  std::size_t bytes_ = 0;   // of cubins and logs
  Lane awaited_, background_{.in_background = true};
  std::optional<v1::CompileWorkerHello> hello_;  // of the last worker that was started
  std::uint64_t last_number_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace cubind
