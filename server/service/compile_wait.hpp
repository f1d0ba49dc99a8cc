// The wait of one GetVariant for a cubin that is not compiled yet.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "server/answer/answerer.hpp"
#include "server/service/context.hpp"
#include "server/service/no_answer.hpp"

namespace cubind {

/// Submits the compiles that a call's answers want, one after the other, and waits for each as long as the
/// call goes along. A compile that fails, or that has ended without the artifact that was asked for, is
/// noted: the call looks its answer up again without it. On the job thread; destroyed on any, once nothing is
/// waited for.
class CompileWait {
 public:
  enum class Step {
    Answer,     // nothing is waited for, or no longer
    LookAgain,  // the compile has failed: without it another record may answer
    Wait,       // one of the two functions will be called, once
  };

  /// What goes on after the wait; the functions keep the call alive. Not called within the scheduler's own
  /// call.
  struct Continuation {
    std::function<void()> look_again;  // the compile has ended
    std::function<void()> answer;      // the time is over
  };

  /// `caller`: whose limits its compiles count in. `deadline` is the caller's.
  CompileWait(ServiceContext& context, std::string caller, std::chrono::system_clock::time_point deadline)
      : context_(context), caller_(std::move(caller)), deadline_(deadline) {}

  /// Waits for the compile that the resolution wants.
  Step begin(const VariantQuestion& asked, const Resolution& resolution, Continuation then);
  /// Neither function is called any more.
  void stop();

  /// Artifact keys that already failed during this call.
  const std::set<Digest>& failed() const { return failed_; }
  CompileAttempts attempts() const { return {job_, error_, !failed_.empty(), refusal_}; }

 private:
  /// An agent is there, or on its way, whose cubins the caller's driver may load.
  bool may_succeed_soon(const Question& question) const;
  /// There is no agent, or none whose cubins the driver loads: the job waits for one, and no call waits for
  /// the job.
  void leave_to_an_agent(const Question& question, const Resolution& resolution);
  /// Absent: it was not taken (a full queue or disk).
  std::optional<JobEvent> submit(const CompileOrder& order);
  Step pass_over(const Digest& key, const std::string& error);
  /// Of the wait for all compiles of the call together.
  Strand::Time end_of_wait(std::chrono::milliseconds longest);
  bool watch(const Digest& key, Strand::Time until, Continuation then);
  void ended(const Digest& key, const JobEvent& event);

  ServiceContext& context_;
  const std::string caller_;
  const std::chrono::system_clock::time_point deadline_;
  std::string job_;  // id of the latest compile
  std::set<Digest> failed_;
  std::string error_;    // of the latest that failed or was not queued
  std::string refusal_;  // of the latest that the store did not take
  bool given_up_ = false;
  std::optional<Strand::Time> waits_since_;
  std::uint64_t watch_ = 0;  // 0: nothing is waited for
  std::uint64_t waits_ = 0;  // tells a timer of an earlier wait from today's
};

}  // namespace cubind
