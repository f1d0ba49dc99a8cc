// The file with which `cubind-worker launch` launches a variant under a profiler.
#pragma once

#include "client/answer.hpp"
#include "schemas/worker.pb.h"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::ctl {

/// The served cubin, its launches for the asked problem, and inputs by the spec's fills. Throws
/// Error(InvalidArgument) if the problem has nothing to launch.
v1::LaunchFile launch_file_of(const KernelSpec& spec, const Answer& answer);

}  // namespace cubind::ctl
