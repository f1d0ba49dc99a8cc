#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace cubind {

/// The kind of fault of an Error. Each has the number of the gRPC status code of its name: a cast is the
/// whole mapping, and code below the gRPC seam never includes gRPC.
enum class ErrorCode {
  InvalidArgument = 3,     // the input is wrong in every state of the system
  NotFound = 5,            // the named thing does not exist
  AlreadyExists = 6,       // the thing to create exists already
  FailedPrecondition = 9,  // right input, wrong state: something else has to change first
  ResourceExhausted = 8,   // a limit, a quota, a disk or a memory is full
  Unavailable = 14,        // not now; the same call may succeed later
  DeadlineExceeded = 4,    // the deadline passed first
  Aborted = 10,            // lost a race, for example a stale fencing number
  PermissionDenied = 7,    // the caller may not do this
  DataLoss = 15,           // stored or transferred bytes are damaged
  Unimplemented = 12,      // known, but not supported
  Cancelled = 1,           // the caller withdrew
  Internal = 13,           // an invariant of cubind's own is broken
};

/// The gRPC spelling, for example "INVALID_ARGUMENT". Total: every enumerator has one.
std::string_view to_string(ErrorCode code);

/// A fault: the current call cannot go on. A tuning failure is data (an outcome) and never an Error; an
/// absent value is std::optional. what() is "where: cause", or the cause alone where `where` is empty.
/// `where` is a place (file and JSON pointer, field path, file name, operation). `cause` says what was wrong
/// there and, if possible, what would be right: `rmsnorm.json /tunables/VECTOR/2: 3 is not a power of two`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string where, std::string cause);

  ErrorCode code() const noexcept { return code_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  ErrorCode code_;
  std::string where_;
  std::string cause_;
};

/// An Error for a failed system call. `error_number` is errno as it was right after the call; the cause reads
/// "OPERATION: No such file or directory". ENOENT is NotFound, EACCES and EPERM PermissionDenied, EEXIST
/// AlreadyExists, ENOSPC, EDQUOT, EMFILE, ENFILE and ENOMEM ResourceExhausted, all others Unavailable.
Error system_error(std::string where, std::string_view operation, int error_number);

}  // namespace cubind
