#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "schemas/worker.pb.h"
#include "tuner/agent/compiler.hpp"

namespace cubind {

/// One toolchain's compiles, shared by all jobs: each artifact key is compiled once, even if several jobs
/// ask for it at a time. Results are kept from job to job, the last used ones up to a number of bytes. What
/// ended without NVRTC's word (a deadline, a lost worker) goes to the jobs that wait for it and is not kept.
/// Thread-safe.
class CompileCache {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{256} << 20;

  explicit CompileCache(Compiler& compiler, std::size_t max_bytes = kDefaultBytes)
      : compiler_(compiler), max_bytes_(max_bytes) {}
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;

  struct Result {
    v1::CompileReply reply;
    std::vector<std::string> entries;  // of the request
    std::string architecture;
  };
  using ResultPtr = std::shared_ptr<const Result>;

  /// Begins the compile unless the key is known or under way; then its priority rises to this one. `input`
  /// is called only if the compile begins. Each call is followed by one give_up(), which ends a compile that
  /// no other job wants.
  void want(const Digest& key, CompilePriority priority, const std::function<CompileInput()>& input);
  void give_up(const Digest& key);
  /// The compile of a wanted key rises to this priority.
  void raise(const Digest& key, CompilePriority priority);

  /// For a wanted key. Null: not ready within `timeout`. Throws Error(Unavailable) as Compiler::wait does.
  ResultPtr wait(const Digest& key, std::chrono::milliseconds timeout);
  /// NVRTC's calls for a key that wait() has answered, told once: they count for the first who asks.
  std::uint32_t take_nvrtc_calls(const Digest& key);
  /// Null: not known.
  ResultPtr find(const Digest& key);

 private:
  struct Entry {
    std::uint64_t id = 0;  // at the compiler; 0: not under way
    CompilePriority priority = CompilePriority::Tuning;
    std::size_t wants = 0;
    bool is_waited_for = false;  // by a thread that has gone to the compiler
    std::shared_ptr<Result> begun;
    ResultPtr result;
    std::uint32_t nvrtc_calls = 0;
    std::list<Digest>::iterator used;  // where there is a result
  };
  void raise(Entry& entry, CompilePriority priority);
  void begin(Entry& entry, CompilePriority priority, CompileInput input);
  void finish(const Digest& key, Entry& entry, v1::CompileReply reply);
  void forget_old();
  std::list<Digest>::iterator forget(std::list<Digest>::iterator used);

  Compiler& compiler_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;  // a result has come, or its compile was lost
  // All guarded by mutex_.
  std::map<Digest, Entry> entries_;
  std::list<Digest> used_;  // last used first
  std::size_t bytes_ = 0;   // of cubins and logs
};

}  // namespace cubind
