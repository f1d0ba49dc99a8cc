#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "plan/launch_plan.hpp"
#include "tuner/agent/compile/kernel_build.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

struct JobInput;

/// One configuration of a tuning job, with everything about it that needs no compiler and no device.
struct Candidate {
  std::uint32_t number = 0;  // in the order in which the job came to it; also its number at the device worker
  std::uint64_t space_number = 0;  // its number in the space, which breaks the last ties
  Configuration configuration;
  LaunchPlan plan;  // symbols are empty
  ArtifactSource source;
  Key artifact_key;
  Key trial_key;
  bool incumbent = false;
  bool is_default = false;
  bool listed = false;  // by the job

  bool must_compete() const { return incumbent || is_default || listed; }
};

/// The configurations that a job has come to, with their keys: each is made when it is first asked for. Two
/// that make the same machine code and launches are one candidate, and the one that was asked for first, the
/// default before all others, represents both. Used from the job's thread.
class Candidates {
 public:
  /// Throws Error(FailedPrecondition) where the default configuration launches nothing.
  Candidates(const JobInput& input, const KernelBuild& build);
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  /// By its number in the space; null where it launches nothing. Pointers stay valid.
  const Candidate* at(std::uint64_t space_number);
  const Candidate& preset() const { return all_.front(); }
  /// The measured winner so far; null: there is none, or today's spec makes another trial of it and the job
  /// searches.
  const Candidate* incumbent() const { return incumbent_; }
  /// The default, which runs the incumbent's code, is the incumbent from now on.
  void prefer_default();
  const std::deque<Candidate>& all() const { return all_; }

 private:
  Candidate* add(std::uint64_t space_number);
  void find_listed();
  void find_incumbent();

  const JobInput& input_;
  const KernelBuild& build_;
  const TrialContext context_;
  std::deque<Candidate> all_;
  std::map<std::uint64_t, Candidate*> by_space_number_;  // null: nothing is launched
  std::map<Digest, Candidate*> by_trial_;
  Candidate* incumbent_ = nullptr;
};

/// A configuration of the job's kernel at some problem, without number, place and trial key. Absent where a
/// constraint or launch limit excludes it or nothing is launched.
std::optional<Candidate> candidate_at(const JobInput& input, const KernelBuild& build, const Problem& problem,
                                      const Configuration& configuration);

/// The candidate of the default configuration of that problem.
std::optional<Candidate> default_at(const JobInput& input, const KernelBuild& build, const Problem& problem);

/// The plan of a configuration for a problem; absent where a constraint or launch limit excludes it.
std::optional<LaunchPlan> plan_for(const KernelSpec& spec, const Problem& problem,
                                   const Configuration& configuration, const DeviceConstants& constants);

}  // namespace cubind
