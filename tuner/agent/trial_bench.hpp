#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/agent/row_invariance.hpp"
#include "tuner/agent/trial_device.hpp"
#include "tuner/agent/trial_log.hpp"
#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The end of an attempt at a trial.
enum class Attempt : std::uint8_t {
  Done,
  Deferred,  // it faulted for the first time: it is repeated in a fresh worker before that counts
  Out,       // its outcome is known and it takes part no longer
};

/// Compiles, verifies and measures trials; stored results come first. Keeps the end of each: compile errors,
/// wrong results, repeated faults and impossible times are stored with the trial. Out of memory is kept for
/// this job alone, because it is not a property of the configuration. Used from the job's thread.
class TrialBench {
 public:
  /// `rows`: absent where the job does not ask for invariance.
  TrialBench(const JobInput& input, CompileSource& artifacts, TrialDevice& device, TrialLog& log,
             RowInvariance* rows, MeasureSettings settings);
  ~TrialBench() { device_.meanwhile({}); }
  TrialBench(const TrialBench&) = delete;
  TrialBench& operator=(const TrialBench&) = delete;

  /// Lets the compiler run ahead.
  void want(const Candidate& candidate);
  Attempt compile(const Candidate& candidate);
  /// Sent as a measurement is.
  Attempt verify(const Candidate& candidate, const DeviceSetup& setup, bool after_timing);

  /// Whether anything is stored of it.
  bool is_known(const Candidate& candidate) const;

  struct Screen {
    Attempt attempt = Attempt::Done;
    std::vector<double> samples_us;  // unless Done: empty
  };
  /// The screening block at `position`, counted from 0. A measurement is sent by commit(), or by
  /// commit_meanwhile(). One that is not verified is watched for what it writes.
  Screen screen(const Candidate& candidate, std::size_t position, std::uint32_t samples,
                double judged_against_us);

  struct Round {
    std::map<std::uint32_t, double> times_us;  // by candidate number; empty unless all were measured
    const Candidate* failed = nullptr;         // then nothing of the round was stored
    Attempt attempt = Attempt::Done;           // of `failed`
  };
  /// So many samples of each of these finalists, in this order, sent in one batch.
  Round round(std::uint32_t round, const std::vector<const Candidate*>& order, std::uint32_t samples);

  void commit() { log_.commit(); }
  /// The same while the device works on the next request, at most every kBetweenBatches.
  void commit_meanwhile() {
    device_.meanwhile([this] { log_.commit_if_due(); });
  }
  /// Before a deferred trial is tried again: the worker that it faulted in does not answer any more.
  void make_fresh_for(const Candidate& candidate);
  /// Whether a stored fault waits for its repetition.
  bool has_faulted(const Candidate& candidate) const;
  /// Frees the memory of device and process for a trial that is not needed now.
  void put_away(const Candidate& candidate);
  void release(const DeviceSetup& setup) { device_.release(setup); }
  /// Lets a trial that runs the code of `measured` end as that one has, or stand where it stands now.
  void share(const Candidate& candidate, const Candidate& measured);
  /// Takes out a trial that lost its standing after it was measured.
  void reject(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);

  /// Absent: still in.
  std::optional<v1::Outcome> outcome(const Candidate& candidate) const;
  /// What a strategy learns of a trial that was timed: the value of all its screening samples. It does not
  /// depend on what the trial was judged against, so that a search under another budget proposes alike.
  /// Absent where it was found wrong before it was screened.
  std::optional<double> observed_us(const Candidate& candidate) const;
  /// How the trial ended, or stands now.
  v1::Outcome ending(const Candidate& candidate) const;
  const Compiled& artifact(const Candidate& candidate) const;
  /// The job's tick: from the stored blocks, else from the device. 0 before the first block.
  double tick_us() const { return tick_us_; }
  void learn_tick(double tick_us);

 private:
  /// The launch limit of a compiled entry that the candidate's plan exceeds at the problem; empty: none.
  /// Throws if arguments do not fit. If `cubin` is empty, symbols alone are compared.
  std::string exceeded_limit(const Candidate& candidate, const Problem& problem, const LaunchPlan& plan,
                             std::string_view cubin) const;
  /// Enters a trial that another kernel has, unless this one's work cannot be done in its samples' time.
  Attempt adopt(const Candidate& candidate);
  /// Whether the stored results put the trial out; settled() also acts on it.
  bool is_settled(const Candidate& candidate) const;
  bool settled(const Candidate& candidate);
  Attempt judge(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);
  Attempt fault(const Candidate& candidate, v1::Outcome outcome, const std::string& detail);
  Attempt out(const Candidate& candidate, v1::Outcome outcome);
  /// Another kernel has verified the trial since it was unverified here, failed by another tolerance or
  /// reference, or faulted once.
  void take_standing(const Candidate& candidate, const v1::VerificationResult& stored);
  Attempt keep_verification(const Candidate& candidate, const DeviceSetup& setup, bool after_timing,
                            const v1::DeviceReply& reply);
  /// Whether a correct trial also meets the job's numerics.
  bool has_wanted_bits(const DeviceSetup& setup, bool after_timing, const v1::DeviceReply& reply);
  Attempt judge_measured(const Candidate& candidate, const v1::DeviceReply& reply);
  v1::SampleBlock block_of(const v1::DeviceReply& reply, const v1::MeasuredItem& item) const;
  std::optional<Round> stored_round(std::uint32_t round, const std::vector<const Candidate*>& order) const;
  TrialDevice::Measured measure_round(const std::vector<const Candidate*>& order, std::uint32_t samples);

  const JobInput& input_;
  CompileSource& artifacts_;
  TrialDevice& device_;
  TrialLog& log_;
  RowInvariance* rows_;
  MeasureSettings settings_;
  double tick_us_ = 0;
  std::map<std::uint32_t, v1::Outcome> out_;           // by candidate number
  std::map<std::uint32_t, std::uint64_t> faulted_in_;  // generation of the worker
};

}  // namespace cubind
