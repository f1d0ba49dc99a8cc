// The rpcs that list. All but list_kernels() and list_records() on the job thread.
#pragma once

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

void list_kernels(ServiceContext& context, const v1::ListKernelsRequest& request,
                  v1::ListKernelsReply& reply);
/// Classes that agents offer, then those known from records and tables alone.
void list_devices(ServiceContext& context, google::protobuf::RepeatedPtrField<v1::DeviceClass>& devices);
void cancel_job(ServiceContext& context, const OpenCall& open, const v1::CancelJobRequest& request,
                v1::CancelJobReply& reply);
void list_records(ServiceContext& context, const Caller& caller, const v1::ListRecordsRequest& request,
                  v1::ListRecordsReply& reply);
void get_status(ServiceContext& context, const Caller& caller, v1::GetStatusReply& reply);

}  // namespace cubind
