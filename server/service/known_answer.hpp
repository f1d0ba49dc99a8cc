// The short way of GetVariant: it sends an earlier answer again.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string_view>

#include "server/service/context.hpp"

namespace cubind {

/// False: there is no earlier answer, or it no longer holds. A fault of the question shows when the answer is
/// worked out again. Reads the store if the cubin is no longer in RAM, and throws that read's errors.
bool answer_again(ServiceContext& context, std::string_view request, grpc::ByteBuffer& reply);

}  // namespace cubind
