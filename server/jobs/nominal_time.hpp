// Which of several problems is more work, before any of them was measured.
#pragma once

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Seconds of one launch on a GPU that reaches nominal rates of bytes and of operations, by the spec's
/// `work`: good for comparing problems of one kernel and for nothing else. 0 where the spec does not say it.
double nominal_seconds(const KernelSpec& spec, const Problem& problem);

/// Seconds of a job that tries about 150 configurations, by the same measure: good for putting jobs in an
/// order. The same for all problems where the spec does not say its work.
double nominal_job_seconds(const KernelSpec& spec, const Problem& problem);

}  // namespace cubind
