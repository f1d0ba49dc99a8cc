#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "schemas/agent.pb.h"
#include "tuner/agent/compile/compile_source.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/tuning/candidates.hpp"
#include "tuner/agent/tuning/job_input.hpp"

namespace cubind {

/// Batches of results are sent at least so far apart, but for faults and the ends of stages. One for each
/// measurement, of a millisecond, kept the daemon so busy that two GPUs waited for it.
inline constexpr std::chrono::milliseconds kBetweenBatches{10};

/// The known results of the job's trials: those of the lease, and those that the job has added. Every new
/// result goes through here, and every question is looked up here first. So a killed job runs the same search
/// from the start over the stored results and measures only the missing ones.
///
/// Additions are gathered and sent as one batch by commit(), as JobChannel::store() does. Used from the job's
/// thread. The input, artifacts, channel and clock must outlive it.
class TrialLog {
 public:
  /// Selects the stored blocks that are comparable with the job's measurements. The others keep their index
  /// and are otherwise ignored.
  struct Comparable {
    std::string timer;              // the job's: none of another timer
    bool alone_on_the_gpu = false;  // none that was measured next to a foreign process
  };
  TrialLog(const v1::LeaseGrant& lease, const JobInput& input, Comparable comparable,
           CompileSource& artifacts, JobChannel& channel, const Clock& clock);

  /// Absent: the trial was never tried for this kernel.
  const v1::TrialHeader* header(const Candidate& candidate) const;
  const v1::VerificationResult* verification(const Candidate& candidate, const Problem& problem,
                                             bool after_timing) const;
  /// Whether another reference or tolerance than today's has judged it, and today's has not found it wrong.
  bool was_verified_otherwise(const Candidate& candidate) const;
  /// In the order of their indices.
  std::vector<const v1::SampleBlock*> blocks(const Candidate& candidate, v1::SampleBlock::Stage stage) const;
  const v1::SampleBlock* block(const Candidate& candidate, v1::SampleBlock::Stage stage,
                               std::uint32_t index) const;
  /// The index that no block of the trial and stage has, nor any above it.
  std::uint32_t next_index(const Candidate& candidate, v1::SampleBlock::Stage stage) const;
  /// The number of samples of the trial and stage.
  std::uint32_t samples(const Candidate& candidate, v1::SampleBlock::Stage stage) const;
  /// Tick of the stored blocks; 0: there is none. A resumed job keeps its first tick.
  double stored_tick_us() const { return stored_tick_us_; }

  /// A trial with results is UNVERIFIED until its outcome is set. OUT_OF_MEMORY is refused with
  /// Error(Internal): it is not a property of a configuration.
  void set_outcome(const Candidate& candidate, v1::Outcome outcome, const std::string& detail,
                   std::uint32_t fault_count);
  /// Enters a trial whose samples or verifications were made for another kernel under this one. False: it is
  /// none.
  bool adopt(const Candidate& candidate);
  /// The trial runs the code of `measured`, whose results count for it: its outcome is that one's. A trial
  /// that was measured before stays as it is.
  void share(const Candidate& candidate, const Candidate& measured);
  void add(const Candidate& candidate, const Problem& problem, v1::VerificationResult result);
  void add(const Candidate& candidate, v1::SampleBlock block);
  /// Sends nothing if nothing was added.
  void commit();
  /// The same where the last batch was sent kBetweenBatches ago.
  void commit_if_due();
  /// Returns when the daemon has every batch.
  void settle();

 private:
  using BlockKey = std::tuple<std::string, int, std::uint32_t>;        // trial key, stage, index
  using VerificationKey = std::tuple<std::string, std::string, bool>;  // trial key, problem, after timing
  using Verifications = std::map<VerificationKey, v1::VerificationResult>;
  bool counts(const v1::SampleBlock& block) const;
  std::ranges::subrange<Verifications::const_iterator> verifications_of(const std::string& key) const;
  void require_header(const Candidate& candidate);

  const JobInput& input_;
  Comparable comparable_;
  CompileSource& artifacts_;
  JobChannel& channel_;
  const Clock& clock_;
  std::map<std::string, v1::TrialHeader> headers_;
  std::map<BlockKey, v1::SampleBlock> blocks_;
  Verifications verifications_;
  std::set<std::string> outdated_;  // trial keys
  double stored_tick_us_ = 0;

  v1::Batch pending_;
  std::map<std::string, Digest> pending_headers_;    // trial key to artifact key: sent with the next batch
  std::chrono::steady_clock::time_point sent_at_{};  // the last batch
};

}  // namespace cubind
