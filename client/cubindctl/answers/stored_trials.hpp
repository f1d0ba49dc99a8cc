// What a daemon has stored of a kernel: its trials, and the spec that explains them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/connection.hpp"
#include "client/cubindctl/answers/explanation.hpp"
#include "client/cubindctl/options.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/table/table.hpp"

namespace cubind::ctl {

/// The daemon's own file if this machine has it, else the shipped kernel of that name; callers may have
/// defined it. Throws Error(NotFound) with the hint if the daemon does not know the kernel,
/// Error(FailedPrecondition) if this machine has no such spec.
std::shared_ptr<const KernelSpec> stored_spec(const Connection& connection, const std::string& name,
                                              const CommonOptions& common, const std::string& hint);

/// The question that the job has answered. Throws Error(InvalidArgument) if it only compiled a cubin.
ExplainedQuestion question_of(const v1::Job& job);
/// The question of the options about a kernel, without a problem and a device class.
ExplainedQuestion question_of(const std::string& kernel, const QuestionOptions& options);

struct StoredTrials {
  Table table;
  std::uint32_t shipped_left_out = 0;  // records
  bool has_samples = true;             // false: with them the table would exceed its size
};

inline constexpr const char* kNoSamplesRemark =
    "the differences between the finalists are left out: with all samples the kernel's trials exceed the "
    "size of a table";

/// Every record and trial of the kernel, replayed and provisional ones too, with samples if they fit. An
/// empty device stands for all. `shipped`: with the records that came with cubind.
StoredTrials stored_trials(const Connection& connection, const std::string& kernel, const std::string& device,
                           bool shipped, const CommonOptions& common);

}  // namespace cubind::ctl
