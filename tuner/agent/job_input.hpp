#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/agent/kernel_build.hpp"
#include "tuner/plan/launch_plan.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// One configuration of a tuning job, with everything about it that needs no compiler and no device.
struct Candidate {
  std::uint32_t number = 0;  // place in canonical order; also its number at the device worker
  Configuration configuration;
  LaunchPlan plan;  // symbols are empty
  ArtifactSource source;
  Key artifact_key;
  Key trial_key;
  bool incumbent = false;
  bool is_default = false;

  bool must_compete() const { return incumbent || is_default; }
};

/// The input of a tuning job. Immutable once made.
struct JobInput {
  std::shared_ptr<const KernelSpec> spec;
  Problem problem;
  DeviceConstants constants;
  v1::DeviceFacts facts;
  v1::DriverVersion driver;
  bool replayed = false;
  Digest device_class;
  Policy policy;
  Numerics numerics;
  Digest job_key;
  Digest verification;  // digest of reference and tolerance
  std::string architecture;
  std::vector<Candidate> candidates;  // in search order; no two with the same trial key
};

/// Parses the lease's spec, enumerates the valid configurations, drops those that cannot launch, computes keys
/// and orders. Throws Error(InvalidArgument) for a spec or problem that is wrong, Error(FailedPrecondition)
/// where no configuration is valid.
JobInput make_job_input(const v1::LeaseGrant& lease, const KernelBuild& build, const v1::DeviceInfo& device);

/// A configuration of the job's kernel at some problem, without number and trial key. Absent where a constraint
/// or launch limit excludes it or nothing is launched.
std::optional<Candidate> candidate_at(const JobInput& input, const KernelBuild& build, const Problem& problem,
                                      const Configuration& configuration);

/// Likewise for the default configuration of that problem.
std::optional<Candidate> default_at(const JobInput& input, const KernelBuild& build, const Problem& problem);

/// The plan of a configuration for a problem; absent where a constraint or launch limit excludes it.
std::optional<LaunchPlan> plan_for(const KernelSpec& spec, const Problem& problem,
                                   const Configuration& configuration, const DeviceConstants& constants);

}  // namespace cubind
