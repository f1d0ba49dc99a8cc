#include "base/error.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

namespace cubind {

TEST_CASE("an error reads where and cause") {
  const Error error(ErrorCode::InvalidArgument, "rmsnorm.json /tunables/VECTOR/2", "3 is not a power of two");
  CHECK(std::string(error.what()) == "rmsnorm.json /tunables/VECTOR/2: 3 is not a power of two");
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK(error.where() == "rmsnorm.json /tunables/VECTOR/2");
  CHECK(error.cause() == "3 is not a power of two");
}

TEST_CASE("an error without a place reads its cause alone") {
  CHECK(std::string(Error(ErrorCode::Internal, "", "broken").what()) == "broken");
}

TEST_CASE("error codes have the spelling of gRPC and no two the same") {
  CHECK(to_string(ErrorCode::FailedPrecondition) == "FAILED_PRECONDITION");
  std::set<std::string_view> names;
  for (const ErrorCode code :
       {ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::AlreadyExists,
        ErrorCode::FailedPrecondition, ErrorCode::ResourceExhausted, ErrorCode::Unavailable,
        ErrorCode::DeadlineExceeded, ErrorCode::Aborted, ErrorCode::PermissionDenied, ErrorCode::DataLoss,
        ErrorCode::Unimplemented, ErrorCode::Cancelled, ErrorCode::Internal}) {
    names.insert(to_string(code));
  }
  CHECK(names.size() == 13);
}

TEST_CASE("a failed system call keeps the meaning of errno") {
  CHECK(system_error("f", "cannot open", ENOENT).code() == ErrorCode::NotFound);
  CHECK(system_error("f", "cannot open", EACCES).code() == ErrorCode::PermissionDenied);
  CHECK(system_error("f", "cannot write", ENOSPC).code() == ErrorCode::ResourceExhausted);
  CHECK(system_error("f", "cannot read", EIO).code() == ErrorCode::Unavailable);
  CHECK(std::string(system_error("f", "cannot open", ENOENT).what()) ==
        "f: cannot open: No such file or directory");
}

}  // namespace cubind
