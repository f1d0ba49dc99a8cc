// PlanTune: the effect that a Tune would have.
#pragma once

#include <grpcpp/grpcpp.h>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

/// Counts search spaces on the thread of walks, one problem at a time, then asks the job thread for open
/// jobs.
grpc::ServerUnaryReactor* plan_tune(ServiceContext& context, OpenCallPtr open, v1::TuneRequest request,
                                    grpc::ByteBuffer& reply);

}  // namespace cubind
