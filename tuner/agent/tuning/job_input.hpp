#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.hpp"
#include "plan/search.hpp"
#include "schemas/agent.pb.h"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/space.hpp"

namespace cubind {

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
  bool untrusted = false;  // as in a LeaseGrant
  Digest verification;     // digest of reference and tolerance
  std::string architecture;

  std::shared_ptr<const KernelSpace> space;
  SearchBudget budget;
  double spent_seconds = 0;                // of the budget, in earlier leases
  Configuration preset;                    // the default for this problem
  std::vector<Configuration> hints;        // of neighbouring problems: proposed after it
  std::vector<Configuration> listed;       // nothing but these and the default is tried; empty: a search
  std::optional<Configuration> incumbent;  // the measured winner so far
  Digest incumbent_trial;
};

/// Reads the lease. Throws Error(InvalidArgument) for a problem that is wrong, Error(FailedPrecondition)
/// where no configuration is valid, and as KernelSpace does. `interrupt` is asked while the space is made.
JobInput make_job_input(const v1::LeaseGrant& lease, const std::shared_ptr<const KernelSpec>& spec,
                        const v1::DeviceInfo& device, const Interrupt& interrupt = {});

}  // namespace cubind
