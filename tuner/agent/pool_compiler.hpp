#pragma once

#include <map>
#include <mutex>

#include "tuner/agent/compile_pool.hpp"
#include "tuner/agent/compiler.hpp"

namespace cubind {

/// One toolchain's compile pool, shared by all jobs. Thread-safe.
class PoolCompiler final : public Compiler {
 public:
  explicit PoolCompiler(CompilePoolOptions options);

  /// NVRTC's own version and name. Throws Error(Unavailable).
  v1::Toolchain probe() { return pool_.probe(); }
  /// As the pool's: workers that are there before a request comes.
  void keep_ready(unsigned workers) { pool_.keep_ready(workers); }

  std::uint64_t submit(CompileInput input, CompilePriority priority) override;
  std::optional<v1::CompileReply> wait(std::uint64_t id, std::chrono::milliseconds timeout) override;
  void raise(std::uint64_t id, CompilePriority priority) override;
  void abandon(std::uint64_t id) override;

 private:
  struct Request {
    CompilePriority priority = CompilePriority::Tuning;
    std::uint64_t pool_id = 0;  // changes when it is submitted again
    unsigned losses = 0;
    bool stood_still = false;
  };

  CompilePool pool_;
  std::mutex mutex_;
  std::uint64_t next_id_ = 1;                  // guarded by mutex_
  std::map<std::uint64_t, Request> requests_;  // guarded by mutex_
};

}  // namespace cubind
