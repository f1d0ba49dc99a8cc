// A judged source and the baseline of its task, as two configurations of one kernel.
#pragma once

#include <string>
#include <vector>

#include "schemas/cubind.pb.h"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The tunable by which they differ: 1 is the baseline, 0 the source.
inline constexpr const char* kBaselineTunable = "CUBIND_BASELINE";

/// How the judged source is launched. Empty members: like the baseline.
struct JudgedLaunch {
  std::vector<std::string> grid, block;
  std::string shared_bytes;
};

/// The kernel `name`: the task, whose tunables have the baseline's values alone. Its default is the baseline.
/// The first file is the source. Throws Error(InvalidArgument) for a Triton kernel, for a file that holds a
/// zero byte, and where a launch is given for a task with several.
std::shared_ptr<const KernelSpec> judged_kernel(const std::string& name, const KernelSpec& task,
                                                const Configuration& baseline,
                                                const std::vector<SourceFile>& files,
                                                const JudgedLaunch& launch);

/// The configuration of the source, or of the baseline.
Configuration judged_configuration(const Configuration& baseline, bool is_baseline);

}  // namespace cubind
