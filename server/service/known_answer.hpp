// The short way of GetVariant: what was answered before is sent again.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string_view>

#include "server/service/context.hpp"

namespace cubind {

/// False: not answered before, or no longer so. What is wrong with it comes out when it is worked out anew.
/// Reads the store where the cubin is no longer in RAM, and may throw what that throws.
bool answer_again(ServiceContext& context, std::string_view request, grpc::ByteBuffer& reply);

}  // namespace cubind
