// The arguments with which a variant is launched on one problem when no caller gives them.
#pragma once

#include <vector>

#include "base/digest.hpp"
#include "plan/launch_plan.hpp"
#include "schemas/worker.pb.h"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Adds the buffers of the plans, each as large as the largest of them wants it, with its fill and, for an
/// output, its tolerance; and the measurement's values of the caller's scalars. The seeds of the fills follow
/// from `key` and the buffers' names. Throws Error(InvalidArgument) if the spec's expressions fail.
void add_arguments(const KernelSpec& spec, const Problem& problem,
                   const std::vector<const LaunchPlan*>& plans, const Digest& key,
                   v1::PrepareProblem& request);

}  // namespace cubind
