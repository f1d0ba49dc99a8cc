#include "tuner/agent/compile_cache.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

Error lost() {
  return {ErrorCode::Unavailable, "compile worker", "the compile that others waited for was lost"};
}

// Not that of a parent whose worker ended.
bool is_nvrtcs_word(const v1::CompileReply& reply) { return reply.nvrtc_calls() > 0 && !reply.worker_ends(); }

std::size_t size_of(const v1::CompileReply& reply) { return reply.cubin().size() + reply.log().size(); }

}  // namespace

void CompileCache::want(const Digest& key, CompilePriority priority,
                        const std::function<CompileInput()>& input) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  ++entry.wants;
  if (entry.result) {
    return;
  }
  if (entry.id == 0) {
    begin(entry, priority, input());
  } else {
    raise(entry, priority);
  }
}

void CompileCache::raise(const Digest& key, CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  raise(entries_.at(key), priority);
}

void CompileCache::raise(Entry& entry, CompilePriority priority) {
  if (entry.id != 0 && priority > entry.priority) {
    entry.priority = priority;
    compiler_.raise(entry.id, priority);
  }
}

void CompileCache::begin(Entry& entry, CompilePriority priority, CompileInput input) {
  entry.priority = priority;
  entry.begun = std::make_shared<Result>();
  entry.begun->entries.assign(input.request.entries().begin(), input.request.entries().end());
  entry.begun->architecture = input.request.architecture();
  entry.id = compiler_.submit(std::move(input), priority);
}

void CompileCache::give_up(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.wants == 0) {
    return;
  }
  Entry& entry = found->second;
  if (--entry.wants > 0) {
    return;
  }
  if (!entry.result) {
    if (entry.id != 0) {
      compiler_.abandon(entry.id);
    }
    entries_.erase(found);
  } else if (is_nvrtcs_word(entry.result->reply)) {
    forget_old();
  } else {
    forget(entry.used);
  }
}

// One thread asks the compiler, the others wait for it. A thread that waits also wants the key, so that its
// entry stays.
CompileCache::ResultPtr CompileCache::wait(const Digest& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(key);
  if (entry.is_waited_for) {
    changed_.wait_for(lock, timeout, [&] { return !entry.is_waited_for; });
  }
  if (entry.result || entry.is_waited_for) {
    return entry.result;
  }
  if (entry.id == 0) {
    throw lost();
  }
  entry.is_waited_for = true;
  const std::uint64_t id = entry.id;
  lock.unlock();
  std::optional<v1::CompileReply> reply;
  std::exception_ptr failure;
  try {
    reply = compiler_.wait(id, timeout);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  lock.lock();
  entry.is_waited_for = false;
  if (failure) {
    entry.id = 0;
  } else if (reply) {
    finish(key, entry, *std::move(reply));
  }
  changed_.notify_all();
  if (failure) {
    std::rethrow_exception(failure);
  }
  return entry.result;
}

void CompileCache::finish(const Digest& key, Entry& entry, v1::CompileReply reply) {
  entry.id = 0;
  entry.nvrtc_calls = reply.nvrtc_calls();
  entry.begun->reply = std::move(reply);
  entry.result = std::exchange(entry.begun, nullptr);
  bytes_ += size_of(entry.result->reply);
  entry.used = used_.insert(used_.begin(), key);
}

std::uint32_t CompileCache::take_nvrtc_calls(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : std::exchange(found->second.nvrtc_calls, 0);
}

CompileCache::ResultPtr CompileCache::find(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.result) {
    return nullptr;
  }
  used_.splice(used_.begin(), used_, found->second.used);
  return found->second.result;
}

// Oldest first; those that are wanted stay.
void CompileCache::forget_old() {
  for (auto at = used_.end(); bytes_ > max_bytes_ && at != used_.begin();) {
    --at;
    if (entries_.at(*at).wants == 0) {
      at = forget(at);
    }
  }
}

std::list<Digest>::iterator CompileCache::forget(std::list<Digest>::iterator used) {
  const auto entry = entries_.find(*used);
  bytes_ -= size_of(entry->second.result->reply);
  entries_.erase(entry);
  return used_.erase(used);
}

}  // namespace cubind
