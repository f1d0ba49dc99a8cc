#include "client/c/calling.hpp"

#include <exception>
#include <new>

#include "base/version.hpp"

namespace cubind::c {
namespace {

thread_local std::string last_error;

cubind_code remember(ErrorCode code, const char* message) noexcept {
  try {
    last_error = message;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return static_cast<cubind_code>(code);
}

}  // namespace

static_assert(CUBIND_INVALID_ARGUMENT == static_cast<int>(ErrorCode::InvalidArgument) &&
              CUBIND_NOT_FOUND == static_cast<int>(ErrorCode::NotFound) &&
              CUBIND_FAILED_PRECONDITION == static_cast<int>(ErrorCode::FailedPrecondition) &&
              CUBIND_UNAVAILABLE == static_cast<int>(ErrorCode::Unavailable) &&
              CUBIND_DEADLINE_EXCEEDED == static_cast<int>(ErrorCode::DeadlineExceeded) &&
              CUBIND_DATA_LOSS == static_cast<int>(ErrorCode::DataLoss));

cubind_code fail() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return remember(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return remember(ErrorCode::ResourceExhausted, "out of memory");
  } catch (const std::exception& error) {
    return remember(ErrorCode::Internal, error.what());
  } catch (...) {
    return remember(ErrorCode::Internal, "an exception of no known type");
  }
}

void check_index(std::size_t index, std::size_t count, const char* name) {
  if (index >= count) {
    throw Error(ErrorCode::InvalidArgument, name,
                std::to_string(index) + ", there are " + std::to_string(count));
  }
}

}  // namespace cubind::c

const char* cubind_code_name(cubind_code code) {
  using cubind::ErrorCode;
  if (code == CUBIND_OK) {
    return "OK";
  }
  for (const ErrorCode known :
       {ErrorCode::Cancelled, ErrorCode::InvalidArgument, ErrorCode::DeadlineExceeded, ErrorCode::NotFound,
        ErrorCode::AlreadyExists, ErrorCode::PermissionDenied, ErrorCode::ResourceExhausted,
        ErrorCode::FailedPrecondition, ErrorCode::Aborted, ErrorCode::Unimplemented, ErrorCode::Internal,
        ErrorCode::Unavailable, ErrorCode::DataLoss}) {
    if (static_cast<int>(known) == static_cast<int>(code)) {
      return to_string(known).data();  // of a literal
    }
  }
  return "UNKNOWN";
}

const char* cubind_last_error() { return cubind::c::last_error.c_str(); }

const char* cubind_version() { return cubind::kVersion; }
