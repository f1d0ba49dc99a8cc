#include "tuner/agent/compile/compile_service.hpp"

#include <algorithm>
#include <exception>

#include "base/error.hpp"

namespace cubind {
namespace {

// How long a freed slot of another service may stay unnoticed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

// A machine on which workers are killed from outside again and again compiles nothing.
constexpr unsigned kMaxLosses = 3;

// Not that of a parent whose worker ended.
bool is_compilers_word(const v1::CompileReply& reply) {
  return reply.nvrtc_calls() > 0 && !reply.worker_ends();
}

std::size_t size_of(const v1::CompileReply& reply) { return reply.cubin().size() + reply.log().size(); }

}  // namespace

CompileService::CompileService(CompileServiceOptions options) : options_(std::move(options)) {
  awaited_.threads = awaited_.bare = options_.slots->most();
  background_.threads = background_.bare = options_.slots->most_in_background();
  for (Lane* lane : {&awaited_, &background_}) {
    for (unsigned i = 0; i < lane->threads; ++i) {
      threads_.emplace_back([this, lane] { serve(*lane); });
    }
  }
}

CompileService::~CompileService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    awaited_.work.notify_all();
    background_.work.notify_all();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

v1::Toolchain CompileService::probe() {
  Lock lock(mutex_);
  if (!hello_ || !hello_->error().empty()) {
    hello_.reset();
    const unsigned kept = std::exchange(awaited_.kept, std::max(awaited_.kept, 1U));
    awaited_.work.notify_all();
    changed_.wait(lock, [&] { return hello_.has_value(); });
    awaited_.kept = std::min(awaited_.kept, kept);
  }
  if (!hello_->error().empty()) {
    throw Error(ErrorCode::Unavailable, "", hello_->error());
  }
  return hello_->toolchain();
}

void CompileService::keep_ready(unsigned workers) {
  const std::lock_guard lock(mutex_);
  awaited_.kept = std::min(workers, awaited_.threads);
  awaited_.work.notify_all();
}

// ---- what jobs want ----

void CompileService::want(const Digest& key, CompilePriority priority,
                          const std::function<CompileInput()>& input) {
  const std::lock_guard lock(mutex_);
  const auto found = compiles_.find(key);
  const bool is_new = found == compiles_.end();
  if (!is_new && found->second->failure.empty()) {
    ++found->second->wants;
    return raise(*found->second, priority);
  }
  auto compile = std::make_shared<Compile>();
  compile->key = key;
  compile->number = ++last_number_;
  compile->input = input();
  compile->priority = priority;
  compile->wants = is_new ? 1 : found->second->wants + 1;
  compiles_[key] = compile;
  enqueue(std::move(compile));
}

void CompileService::give_up(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = compiles_.find(key);
  if (found == compiles_.end() || found->second->wants == 0 || --found->second->wants > 0) {
    return;
  }
  Compile& compile = *found->second;
  if (!compile.result) {
    lane_of(compile).waiting.erase({-static_cast<int>(compile.priority), compile.number});
    compiles_.erase(found);
  } else if (is_compilers_word(compile.result->reply)) {
    forget_old();
  } else {
    forget(compile.used);
  }
}

void CompileService::raise(const Digest& key, CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  raise(*compiles_.at(key), priority);
}

Compiler::ResultPtr CompileService::wait(const Digest& key, std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  const CompilePtr compile = compiles_.at(key);
  changed_.wait_for(lock, timeout, [&] { return compile->result || !compile->failure.empty(); });
  if (!compile->failure.empty()) {
    throw Error(ErrorCode::Unavailable, "compile worker", "lost again and again: " + compile->failure);
  }
  return compile->result;
}

std::uint32_t CompileService::take_nvrtc_calls(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = compiles_.find(key);
  return found == compiles_.end() ? 0 : std::exchange(found->second->nvrtc_calls, 0);
}

Compiler::ResultPtr CompileService::find(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = compiles_.find(key);
  if (found == compiles_.end() || !found->second->result) {
    return nullptr;
  }
  used_.splice(used_.begin(), used_, found->second->used);
  return found->second->result;
}

// Oldest first; those that are wanted stay.
void CompileService::forget_old() {
  for (auto at = used_.end(); bytes_ > options_.kept_bytes && at != used_.begin();) {
    --at;
    if (compiles_.at(*at)->wants == 0) {
      at = forget(at);
    }
  }
}

std::list<Digest>::iterator CompileService::forget(std::list<Digest>::iterator used) {
  const auto found = compiles_.find(*used);
  bytes_ -= size_of(found->second->result->reply);
  compiles_.erase(found);
  return used_.erase(used);
}

// ---- the queue ----

CompileService::Lane& CompileService::lane_of(const Compile& compile) {
  return compile.priority == CompilePriority::Background ? background_ : awaited_;
}

void CompileService::enqueue(CompilePtr compile) {
  Lane& lane = lane_of(*compile);
  const Order order{-static_cast<int>(compile->priority), compile->number};
  lane.waiting.emplace(order, std::move(compile));
  lane.work.notify_all();
}

// What runs in the background is withdrawn by its thread.
void CompileService::raise(Compile& compile, CompilePriority priority) {
  if (priority <= compile.priority) {
    return;
  }
  auto waiting = lane_of(compile).waiting.extract({-static_cast<int>(compile.priority), compile.number});
  compile.priority = priority;
  if (!waiting.empty()) {
    enqueue(std::move(waiting.mapped()));
  }
}

// Null: nothing to do. The first of the waiting has the highest priority: where there is no slot for it there
// is none for the others. A thread without a worker leaves requests to those that have one.
CompileService::CompilePtr CompileService::take(Lane& lane, bool has_worker) {
  const auto first = lane.waiting.begin();
  if (first == lane.waiting.end() || (!has_worker && lane.ready > 0) ||
      !options_.slots->try_take(first->second->priority)) {
    return nullptr;
  }
  CompilePtr compile = std::move(lane.waiting.extract(first).mapped());
  if (compile->input.headers) {
    const auto others = std::ranges::count_if(lane.waiting, [&](const auto& one) {
      const auto& headers = one.second->input.headers;
      return headers && headers->digest == compile->input.headers->digest;
    });
    compile->input.request.set_others_follow(others >= std::max(1, static_cast<int>(lane.workers())));
  }
  return compile;
}

// ---- the threads, one for each worker ----

void CompileService::serve(Lane& lane) {
  std::optional<CompileProcess> process;
  auto idle_until = std::chrono::steady_clock::now();
  Lock lock(mutex_);
  while (!stopping_) {
    const CompilePtr compile = take(lane, process.has_value());
    if (compile || (!process && lane.workers() < lane.kept)) {
      work_on(compile, lane, process, lock);
      idle_until = std::chrono::steady_clock::now() + options_.idle_time;
    } else if (!lane.waiting.empty()) {
      lane.work.wait_for(lock, kBetweenLooks);
    } else if (!process || lane.workers() <= lane.kept) {
      lane.work.wait(lock);
    } else if (std::chrono::steady_clock::now() < idle_until) {
      lane.work.wait_until(lock, idle_until);
    } else {
      --lane.ready;
      ++lane.bare;
      lock.unlock();
      process.reset();
      lock.lock();
    }
  }
}

// Without a compile only the worker is started.
void CompileService::work_on(const CompilePtr& compile, Lane& lane, std::optional<CompileProcess>& process,
                             Lock& lock) {
  const auto slot = compile ? std::optional(compile->priority) : std::nullopt;
  --(process ? lane.ready : lane.bare);
  lane.work.notify_all();  // those without a worker look at what is left
  lock.unlock();
  Outcome outcome = run(compile, lane, process);
  lock.lock();
  ++(process ? lane.ready : lane.bare);
  if (outcome.hello && !outcome.answer.withdrawn) {
    hello_ = std::move(outcome.hello);
    changed_.notify_all();
  }
  if (slot) {
    options_.slots->give(*slot);
    settle(compile, lane, std::move(outcome.answer));
  } else if (!process) {
    lane.kept = 0;
  }
  awaited_.work.notify_all();
  background_.work.notify_all();
}

CompileService::Outcome CompileService::run(const CompilePtr& compile, const Lane& lane,
                                            std::optional<CompileProcess>& process) {
  const auto is_withdrawn = [&] {
    const std::lock_guard lock(mutex_);
    return stopping_ || (compile && (compile->wants == 0 || is_raised(*compile, lane)));
  };
  Outcome outcome;
  if (process && !process->is_usable()) {
    process.reset();
  }
  if (!process) {
    v1::CompileWorkerHello& hello = outcome.hello.emplace();
    try {
      process.emplace(options_, lane.in_background, is_withdrawn);
      *hello.mutable_toolchain() = process->toolchain();
    } catch (const std::exception& error) {
      hello.set_error(error.what());
      outcome.answer.reply.set_log(error.what());
      outcome.answer.worker_lost = true;
      outcome.answer.withdrawn = is_withdrawn();
      return outcome;
    }
  }
  if (compile) {
    outcome.answer = process->compile(compile->input, is_withdrawn);
    if (outcome.answer.ended || process->compiles() >= options_.compiles_per_worker) {
      process.reset();
    }
  }
  return outcome;
}

// It runs in the background, and is wanted sooner by now.
bool CompileService::is_raised(const Compile& compile, const Lane& lane) {
  return lane.in_background && compile.priority != CompilePriority::Background;
}

void CompileService::settle(const CompilePtr& compile, const Lane& lane, CompileProcess::Compilation answer) {
  if (compile->wants == 0 || stopping_) {
    return;
  }
  const bool again = answer.withdrawn ? is_raised(*compile, lane)
                     : answer.worker_lost
                         ? ++compile->losses < kMaxLosses
                         // That says nothing about the source, unless the next worker does so too.
                         : answer.stood_still && !std::exchange(compile->stood_still, true);
  if (again) {
    return enqueue(compile);
  }
  if (answer.worker_lost) {
    compile->failure = answer.reply.log();
  } else {
    auto result = std::make_shared<Result>();
    const v1::CompileRequest& request = compile->input.request;
    result->entries.assign(request.entries().begin(), request.entries().end());
    result->architecture = request.architecture();
    result->reply = std::move(answer.reply);
    compile->nvrtc_calls = result->reply.nvrtc_calls();
    bytes_ += size_of(result->reply);
    compile->used = used_.insert(used_.begin(), compile->key);
    compile->result = std::move(result);
  }
  compile->input = {};
  changed_.notify_all();
}

}  // namespace cubind
