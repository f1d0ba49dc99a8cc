#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace cubind {

/// Throws Error(InvalidArgument): `where` says which argument, `cause` what is wrong with it.
[[noreturn]] inline void refuse(std::string_view where, std::string cause) {
  throw Error(ErrorCode::InvalidArgument, std::string(where), std::move(cause));
}

}  // namespace cubind
