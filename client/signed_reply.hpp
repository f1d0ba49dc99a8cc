#pragma once

#include <string>

#include "client/answer_trust.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

/// What a reply claims, for its question. Throws InvalidArgument for a field that does not convert.
ClaimedAnswer claimed_answer(const v1::GetVariantRequest& request, const v1::GetVariantReply& reply,
                             const std::string& cubin);

}  // namespace cubind
