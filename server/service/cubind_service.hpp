// The public service. It only maps each rpc to its code in *_call and lists.
#pragma once

#include <grpcpp/grpcpp.h>

#include "schemas/agent.grpc.pb.h"
#include "schemas/cubind.grpc.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// The service with these methods in wire format.
template <typename Service, template <typename> typename... Methods>
struct WithRaw {
  using Type = Service;
};
template <typename Service, template <typename> typename First, template <typename> typename... Rest>
struct WithRaw<Service, First, Rest...> {
  using Type = First<typename WithRaw<Service, Rest...>::Type>;
};

using Wire = v1::Cubind;
using RawCubind =
    WithRaw<Wire::Service, Wire::WithRawCallbackMethod_GetVariant,
            Wire::WithRawCallbackMethod_ReportComparison, Wire::WithRawCallbackMethod_GetArtifact,
            Wire::WithRawCallbackMethod_Tune, Wire::WithRawCallbackMethod_WatchJob,
            Wire::WithRawCallbackMethod_ListKernels, Wire::WithRawCallbackMethod_CheckKernel,
            Wire::WithRawCallbackMethod_DefineKernel, Wire::WithRawCallbackMethod_Evaluate,
            Wire::WithRawCallbackMethod_ListDevices, Wire::WithRawCallbackMethod_ListJobs,
            Wire::WithRawCallbackMethod_CancelJob, Wire::WithRawCallbackMethod_ForgetFaults,
            Wire::WithRawCallbackMethod_ExportTable, Wire::WithRawCallbackMethod_ImportTable,
            Wire::WithRawCallbackMethod_GetStatus, Wire::WithRawCallbackMethod_ListWanted,
            Wire::WithRawCallbackMethod_ListRecords, Wire::WithRawCallbackMethod_Backup>::Type;
using RawAgentService = WithRaw<v1::AgentService::Service, v1::AgentService::WithRawCallbackMethod_Serve,
                                v1::AgentService::WithRawCallbackMethod_PutArtifact>::Type;

/// Messages come in wire format: see raw_message.
class CubindService final : public RawCubind {
 public:
  explicit CubindService(ServiceContext& context) : context_(context) {}

  using Unary = grpc::ServerUnaryReactor;
  using Writer = grpc::ServerWriteReactor<grpc::ByteBuffer>;
  using Reader = grpc::ServerReadReactor<grpc::ByteBuffer>;
  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  Unary* GetVariant(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ReportComparison(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ListKernels(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* CheckKernel(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* Evaluate(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ListDevices(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ListJobs(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* CancelJob(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ForgetFaults(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* GetStatus(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ListWanted(Context* call, const Bytes* request, Bytes* reply) override;
  Unary* ListRecords(Context* call, const Bytes* request, Bytes* reply) override;
  Writer* GetArtifact(Context* call, const Bytes* request) override;
  Writer* Tune(Context* call, const Bytes* request) override;
  Writer* WatchJob(Context* call, const Bytes* request) override;
  Writer* ExportTable(Context* call, const Bytes* request) override;
  Writer* Backup(Context* call, const Bytes* request) override;
  Reader* DefineKernel(Context* call, Bytes* reply) override;
  Reader* ImportTable(Context* call, Bytes* reply) override;

 private:
  ServiceContext& context_;
};

/// The agents' service: the lease stream, and artifacts that are too large for it.
class AgentService final : public RawAgentService {
 public:
  explicit AgentService(ServiceContext& context) : context_(context) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Serve(
      grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* PutArtifact(grpc::CallbackServerContext* call,
                                                         grpc::ByteBuffer* reply) override;

 private:
  ServiceContext& context_;
};

}  // namespace cubind
