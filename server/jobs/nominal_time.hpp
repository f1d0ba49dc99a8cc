// Compares the work of problems before any of them was measured.
#pragma once

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Seconds of one launch on a GPU with nominal rates of bytes and operations, by the spec's `work`. Useful
/// only for comparing problems of one kernel. 0 if the spec has no `work`.
double nominal_seconds(const KernelSpec& spec, const Problem& problem);

/// Seconds of a job that tries about 150 configurations, by the same rates. Useful for ordering jobs. The
/// same for all problems if the spec has no `work`.
double nominal_job_seconds(const KernelSpec& spec, const Problem& problem);

}  // namespace cubind
