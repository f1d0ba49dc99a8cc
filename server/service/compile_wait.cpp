#include "server/service/compile_wait.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

/// The part of the caller's deadline that the network and the reply need.
constexpr std::chrono::milliseconds kDeadlineMargin{50};

}  // namespace

CompileWait::Step CompileWait::begin(const VariantQuestion& asked, const Resolution& resolution,
                                     Continuation then) {
  if (given_up_ || !may_succeed_soon(asked.question)) {
    leave_to_an_agent(asked.question, resolution);
    return Step::Answer;
  }
  const Digest& key = resolution.compile->key;
  if (const auto error = context_.scheduler.failed_lately(key)) {
    return pass_over(key, *error);
  }
  const auto job = submit(*resolution.compile);
  if (!job) {
    return Step::Answer;
  }
  const Strand::Time until = end_of_wait(resolution.answer ? asked.compile_wait : asked.longest_wait);
  if (has_ended(job->job.state)) {
    return pass_over(key, job->job.shown().error());
  }
  refusal_ = job->refusal;
  if (ends_the_wait(*job) || std::chrono::steady_clock::now() >= until) {
    return Step::Answer;
  }
  return watch(key, until, std::move(then)) ? Step::Wait : Step::Answer;
}

bool CompileWait::may_succeed_soon(const Question& question) const {
  const auto agents = context_.fleet.agents();
  return current_toolchain(*agents, toolchain_need(question)) ||
         (!current_toolchain(*agents, kernel_need(question)) && context_.scheduler.agents().is_expected());
}

void CompileWait::leave_to_an_agent(const Question& question, const Resolution& resolution) {
  if (!resolution.answer && job_.empty() &&
      !current_toolchain(*context_.fleet.agents(), kernel_need(question))) {
    submit(*resolution.compile);
  }
}

std::optional<JobEvent> CompileWait::submit(const CompileOrder& order) {
  try {
    const JobEvent job = context_.scheduler.submit_compile(order, caller_);
    job_ = job.job.id;
    return job;
  } catch (const Error& error) {
    log_warning(std::string("a compile was not queued: ") + error.what());
    error_ = error.what();
    return std::nullopt;
  }
}

CompileWait::Step CompileWait::pass_over(const Digest& key, const std::string& error) {
  failed_.insert(key);
  error_ = error;
  return Step::LookAgain;
}

Strand::Time CompileWait::end_of_wait(std::chrono::milliseconds longest) {
  const auto now = std::chrono::steady_clock::now();
  if (!waits_since_) {
    waits_since_ = now;
  }
  const std::chrono::nanoseconds until_deadline =
      deadline_ - std::chrono::system_clock::now() - kDeadlineMargin;
  return std::min<Strand::Time>(*waits_since_ + longest, now + until_deadline);
}

bool CompileWait::watch(const Digest& key, Strand::Time until, Continuation then) {
  const std::uint64_t wait = ++waits_;
  watch_ = context_.scheduler.watch(job_, [this, key, look_again = then.look_again](const JobEvent& event) {
    if (ends_the_wait(event)) {
      ended(key, event);
      context_.jobs.post(look_again);
    }
  });
  if (watch_ == 0) {
    return false;
  }
  context_.jobs.post_at(until, [this, wait, answer = std::move(then.answer)] {
    if (waits_ == wait && watch_ != 0) {
      stop();
      answer();
    }
  });
  return true;
}

void CompileWait::ended(const Digest& key, const JobEvent& event) {
  stop();
  refusal_ = event.refusal;
  if (event.job.state == v1::Job::NO_DEVICE || !event.refusal.empty()) {
    given_up_ = true;
  } else {
    // Also after success: a present artifact is found, and an absent one must not be asked for forever.
    failed_.insert(key);
    error_ = event.job.shown().error();
  }
}

void CompileWait::stop() {
  context_.scheduler.unwatch(watch_);
  watch_ = 0;
  ++waits_;
}

}  // namespace cubind
