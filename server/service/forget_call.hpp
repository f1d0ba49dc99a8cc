#pragma once

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// Not from the job thread. Throws FailedPrecondition while a job measures a problem whose faults are asked
/// for.
void forget_faults(ServiceContext& context, const v1::ForgetFaultsRequest& request,
                   v1::ForgetFaultsReply& reply);

}  // namespace cubind
