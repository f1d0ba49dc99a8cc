#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/agent/tuning/row_invariance.hpp"
#include "tuner/agent/tuning/trial_device.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The result of one attempt at a trial.
enum class Attempt : std::uint8_t {
  Done,
  Deferred,  // it faulted for the first time: it is repeated in a new worker before the fault counts
  Out,       // its outcome is known, and it no longer takes part
};

/// Compiles, verifies and measures trials, and uses stored results first. Stores compile errors, wrong
/// results, repeated faults and impossible times with the trial. Keeps out of memory only for this job,
/// because it is not a property of the configuration. Used from the job's thread.
class TrialBench {
 public:
  /// `rows`: null if the job does not ask for invariance.
  TrialBench(const JobInput& input, CompileSource& artifacts, TrialDevice& device, TrialLog& log,
             RowInvariance* rows, MeasureSettings settings);
  ~TrialBench() { device_.meanwhile({}); }
  TrialBench(const TrialBench&) = delete;
  TrialBench& operator=(const TrialBench&) = delete;

  /// Lets the compiler start on this candidate ahead of time.
  void want(const Candidate& candidate);
  Attempt compile(const Candidate& candidate);
  /// The result is sent like a measurement.
  Attempt verify(const Candidate& candidate, const DeviceSetup& setup, bool after_timing);

  /// Whether any result of the candidate is stored.
  bool is_known(const Candidate& candidate) const;

  struct Screen {
    Attempt attempt = Attempt::Done;
    std::vector<double> samples_us;  // empty unless Done
  };
  /// The screening block at `position`, counted from 0. commit() or commit_meanwhile() sends a measurement.
  /// The writes of an unverified trial are checked.
  Screen screen(const Candidate& candidate, std::size_t position, std::uint32_t samples,
                double judged_against_us);

  struct Round {
    std::map<std::uint32_t, double> times_us;  // by candidate number; empty unless all finalists were timed
    const Candidate* failed = nullptr;         // if set, nothing of the round was stored
    Attempt attempt = Attempt::Done;           // of `failed`
  };
  /// Takes `samples` samples of each finalist, in this order, and sends them in one batch.
  Round round(std::uint32_t round, const std::vector<const Candidate*>& order, std::uint32_t samples);

  void commit() { log_.commit(); }
  /// Commits while the device works on the next request, at most every kBetweenBatches.
  void commit_meanwhile() {
    device_.meanwhile([this] { log_.commit_if_due(); });
  }
  /// Makes sure that a deferred trial is not repeated in the worker in which it faulted.
  void make_fresh_for(const Candidate& candidate);
  /// Whether a stored fault waits to be repeated.
  bool has_faulted(const Candidate& candidate) const;
  /// Frees device and process memory of a trial that is not needed now.
  void put_away(const Candidate& candidate);
  void release(const DeviceSetup& setup) { device_.release(setup); }
  /// Gives a trial that runs the same code as `measured` the outcome or current standing of `measured`.
  void share(const Candidate& candidate, const Candidate& measured);
  /// Removes a trial that became invalid after it was measured.
  void reject(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);

  /// Absent while the candidate still takes part.
  std::optional<v1::Outcome> outcome(const Candidate& candidate) const;
  /// The time of a trial that a strategy learns: the value of all its screening samples. It does not depend
  /// on the time that the trial was compared with, so that a search under another budget makes the same
  /// proposals. Absent if the trial was found wrong before screening.
  std::optional<double> observed_us(const Candidate& candidate) const;
  /// The trial's final outcome, or its current one.
  v1::Outcome ending(const Candidate& candidate) const;
  const Compiled& artifact(const Candidate& candidate) const;
  /// The timer's tick for the job: from the stored blocks, else from the device. 0 before the first block.
  double tick_us() const { return tick_us_; }
  void learn_tick(double tick_us);

 private:
  /// The launch limit of a compiled entry that the candidate's plan exceeds for the problem; empty: none.
  /// Throws if arguments do not fit. If `cubin` is empty, only symbols are compared.
  std::string exceeded_limit(const Candidate& candidate, const Problem& problem, const LaunchPlan& plan,
                             std::string_view cubin) const;
  /// Takes over another kernel's trial, unless its samples are too short for this kernel's work.
  Attempt adopt(const Candidate& candidate);
  /// Whether the stored results rule the trial out; settled() also removes it.
  bool is_settled(const Candidate& candidate) const;
  bool settled(const Candidate& candidate);
  Attempt judge(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);
  Attempt fault(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);
  Attempt out(const Candidate& candidate, v1::Outcome outcome);
  /// Uses the verification of another kernel for a trial that was unverified here, failed under another
  /// tolerance or reference, or faulted once.
  void take_standing(const Candidate& candidate, const v1::VerificationResult& stored);
  Attempt keep_verification(const Candidate& candidate, const DeviceSetup& setup, bool after_timing,
                            const v1::DeviceReply& reply);
  /// Whether a correct trial also satisfies the job's numerics.
  bool has_wanted_bits(const DeviceSetup& setup, bool after_timing, const v1::DeviceReply& reply);
  Attempt judge_measured(const Candidate& candidate, const v1::DeviceReply& reply);
  v1::SampleBlock block_of(const v1::DeviceReply& reply, const v1::MeasuredItem& item) const;
  std::optional<Round> stored_round(std::uint32_t round, const std::vector<const Candidate*>& order) const;
  TrialDevice::Measured measure_round(const std::vector<const Candidate*>& order, std::uint32_t samples,
                                      std::uint32_t round);

  const JobInput& input_;
  CompileSource& artifacts_;
  TrialDevice& device_;
  TrialLog& log_;
  RowInvariance* rows_;
  MeasureSettings settings_;
  double tick_us_ = 0;
  std::map<std::uint32_t, v1::Outcome> out_;           // by candidate number
  std::map<std::uint32_t, std::uint64_t> faulted_in_;  // generation of the worker in which it faulted
};

}  // namespace cubind
