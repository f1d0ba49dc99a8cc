#pragma once

#include "client/rule.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

/// The rule of a reply. Throws InvalidArgument for a field that does not convert.
RuleParts rule_parts(const v1::GetVariantReply& reply);

}  // namespace cubind
