#include "tuner/agent/pool_compiler.hpp"

#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

// A worker that was killed from outside says nothing about the source; a machine on which that keeps
// happening compiles nothing.
constexpr unsigned kMaxLosses = 3;

}  // namespace

PoolCompiler::PoolCompiler(CompilePoolOptions options) : pool_(std::move(options)) {}

std::uint64_t PoolCompiler::submit(CompileInput input, CompilePriority priority) {
  const std::uint64_t pool_id = pool_.submit(std::move(input), priority);
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id_++;
  requests_.emplace(id, Request{priority, pool_id});
  return id;
}

std::optional<v1::CompileReply> PoolCompiler::wait(std::uint64_t id, std::chrono::milliseconds timeout) {
  std::uint64_t pool_id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) {
      throw Error(ErrorCode::Internal, "compile", "an unknown request was waited for");
    }
    pool_id = found->second.pool_id;
  }
  std::optional<CompileResult> result = pool_.wait(pool_id, timeout);
  if (!result) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  Request& request = requests_.at(id);
  // A worker that stood still says nothing about the source either, unless the next one does so too.
  if (result->stood_still && !std::exchange(request.stood_still, true)) {
    request.pool_id = pool_.submit(std::move(result->input), request.priority);
    return std::nullopt;
  }
  if (!result->worker_lost) {
    requests_.erase(id);
    return std::move(result->reply);
  }
  if (++request.losses >= kMaxLosses) {
    requests_.erase(id);
    throw Error(ErrorCode::Unavailable, "compile worker", "lost again and again: " + result->reply.log());
  }
  request.pool_id = pool_.submit(std::move(result->input), request.priority);
  return std::nullopt;
}

void PoolCompiler::raise(std::uint64_t id, CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(id);
  if (found != requests_.end()) {
    found->second.priority = priority;
    pool_.raise(found->second.pool_id, priority);
  }
}

void PoolCompiler::abandon(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(id);
  if (found == requests_.end()) {
    return;
  }
  pool_.cancel(found->second.pool_id);
  requests_.erase(found);
}

}  // namespace cubind
