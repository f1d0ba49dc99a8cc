// PlanTune: the effect that a Tune would have.
#pragma once

#include <grpcpp/grpcpp.h>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// Counts search spaces on the thread of walks, one problem at a time, then asks the job thread for open
/// jobs. The request and the reply stay valid until the call is finished.
grpc::ServerUnaryReactor* plan_tune(ServiceContext& context, grpc::CallbackServerContext& call,
                                    const v1::TuneRequest& request, v1::PlanTuneReply& reply);

}  // namespace cubind
