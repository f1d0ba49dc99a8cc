// The exit codes of cubindctl, documented in docs/cli.md and in --help.
#pragma once

#include "base/error.hpp"

namespace cubind::ctl {

enum class ExitCode : int {
  Ok = 0,
  Failure = 1,       // everything that has no code of its own; a check that found something
  Invalid = 2,       // wrong usage or input
  Unavailable = 3,   // no daemon answers, or it cannot answer now
  NotFound = 4,      // no such kernel, device, job, file, or no acceptable record with --on-miss fail
  TuningFailed = 5,  // a job failed or was cancelled; what get --on-miss wait waited for will not come
  Deadline = 6,      // --timeout passed
  Refused = 7,     // the daemon's state forbids it: a limit, a permission, no driver or cubin that fits, not
                   // supported yet
  Detached = 130,  // Ctrl-C: the jobs go on
};

ExitCode exit_code_of(ErrorCode code);

/// The table of --help.
const char* exit_code_help();

}  // namespace cubind::ctl
