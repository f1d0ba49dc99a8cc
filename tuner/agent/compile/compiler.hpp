#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "tuner/agent/compile/compile_input.hpp"
#include "tuner/agent/compile/compile_slots.hpp"

namespace cubind {

/// One toolchain's compiles, shared by all jobs: each artifact key is compiled once, even if several jobs ask
/// for it at a time. The real one is CompileService; tests answer in memory. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;

  struct Result {
    v1::CompileReply reply;
    std::vector<std::string> entries;  // of the request
    std::string architecture;
  };
  using ResultPtr = std::shared_ptr<const Result>;

  /// Begins the compile unless the key is known or under way; then its priority rises to this one. `input`
  /// is called only if the compile begins. Each call is followed by one give_up(), which ends a compile that
  /// no other job wants.
  virtual void want(const Digest& key, CompilePriority priority,
                    const std::function<CompileInput()>& input) = 0;
  virtual void give_up(const Digest& key) = 0;
  /// The compile of a wanted key rises to this priority.
  virtual void raise(const Digest& key, CompilePriority priority) = 0;

  /// For a wanted key. Null: not ready within `timeout`. A faulty source and a crash of the compiler are
  /// results. Throws Error(Unavailable) if workers are lost again and again.
  virtual ResultPtr wait(const Digest& key, std::chrono::milliseconds timeout) = 0;
  /// The compiler's calls for a key that wait() has answered, told once: they count for the first who asks.
  virtual std::uint32_t take_nvrtc_calls(const Digest& key) = 0;
  /// Null: not known.
  virtual ResultPtr find(const Digest& key) = 0;
};

}  // namespace cubind
