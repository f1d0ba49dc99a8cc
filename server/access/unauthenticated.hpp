// The fault of a caller that has not authenticated.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace cubind {

/// UNAUTHENTICATED on the wire. Within cubind it is one kind of PermissionDenied, as for clients.
class Unauthenticated : public Error {
 public:
  explicit Unauthenticated(std::string why) : Error(ErrorCode::PermissionDenied, "token", std::move(why)) {}
};

}  // namespace cubind
