#include "client/cubindctl/terminal/exit_code.hpp"

namespace cubind::ctl {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return ExitCode::Invalid;
    case ErrorCode::NotFound:
      return ExitCode::NotFound;
    case ErrorCode::Unavailable:
      return ExitCode::Unavailable;
    case ErrorCode::DeadlineExceeded:
      return ExitCode::Deadline;
    case ErrorCode::AlreadyExists:
    case ErrorCode::FailedPrecondition:
    case ErrorCode::ResourceExhausted:
    case ErrorCode::Aborted:
    case ErrorCode::PermissionDenied:
    case ErrorCode::Unimplemented:
      return ExitCode::Refused;
    case ErrorCode::DataLoss:
    case ErrorCode::Cancelled:
    case ErrorCode::Internal:
      return ExitCode::Failure;
  }
  return ExitCode::Failure;
}

const char* exit_code_help() {
  return "Exit codes:\n"
         "  0    done\n"
         "  1    any other failure; audit, cover, kernels check, table check or table diff --fail-above "
         "found "
         "something\n"
         "  2    wrong usage or invalid input; the message names the place\n"
         "  3    no daemon answers, or it cannot answer now\n"
         "  4    there is no such kernel, device, job or file; or no acceptable record with --on-miss fail\n"
         "  5    a tuning job failed or was cancelled; get --on-miss wait got no measurement\n"
         "  6    --timeout passed\n"
         "  7    refused: a limit, a permission, no cubin that the driver loads, not supported\n"
         "  130  Ctrl-C: detached, the jobs continue\n";
}

}  // namespace cubind::ctl
