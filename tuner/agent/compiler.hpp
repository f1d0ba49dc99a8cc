#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "tuner/agent/compile_input.hpp"
#include "tuner/agent/compile_slots.hpp"

namespace cubind {

/// Compiles in the background, as a job sees it. The real one is PoolCompiler; tests answer in memory.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Requests of one priority are taken up in the order of submission.
  virtual std::uint64_t submit(CompileInput input, CompilePriority priority) = 0;
  /// Absent: not ready within `timeout`. A faulty source and a crash of the compiler are outcomes. Throws
  /// Error(Unavailable) if workers are lost again and again.
  virtual std::optional<v1::CompileReply> wait(std::uint64_t id, std::chrono::milliseconds timeout) = 0;
  /// Where it has not begun, it goes before those of a lower priority from now on.
  virtual void raise(std::uint64_t id, CompilePriority priority) = 0;
  /// The request is no longer wanted.
  virtual void abandon(std::uint64_t id) = 0;
};

}  // namespace cubind
