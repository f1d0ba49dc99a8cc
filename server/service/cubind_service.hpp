// The public service. It only maps each rpc to its code in *_call and lists.
#pragma once

#include "schemas/agent.grpc.pb.h"
#include "schemas/cubind.grpc.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// GetVariant is taken in wire format: most answers were given before and are sent again as they were.
class CubindService final : public v1::Cubind::WithRawCallbackMethod_GetVariant<v1::Cubind::CallbackService> {
 public:
  explicit CubindService(ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetVariant(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(grpc::CallbackServerContext* call,
                                                           const v1::GetArtifactRequest* request) override;
  grpc::ServerWriteReactor<v1::TuneEvent>* Tune(grpc::CallbackServerContext* call,
                                                const v1::TuneRequest* request) override;
  grpc::ServerUnaryReactor* PlanTune(grpc::CallbackServerContext* call, const v1::TuneRequest* request,
                                     v1::PlanTuneReply* reply) override;
  grpc::ServerWriteReactor<v1::TuneEvent>* WatchJob(grpc::CallbackServerContext* call,
                                                    const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* ListKernels(grpc::CallbackServerContext* call,
                                        const v1::ListKernelsRequest* request,
                                        v1::ListKernelsReply* reply) override;
  grpc::ServerUnaryReactor* CheckKernel(grpc::CallbackServerContext* call,
                                        const v1::CheckKernelRequest* request,
                                        v1::CheckKernelReply* reply) override;
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* call,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesReply* reply) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* call, const v1::ListJobsRequest* request,
                                     v1::ListJobsReply* reply) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* call, const v1::CancelJobRequest* request,
                                      v1::CancelJobReply* reply) override;
  grpc::ServerUnaryReactor* ForgetFaults(grpc::CallbackServerContext* call,
                                         const v1::ForgetFaultsRequest* request,
                                         v1::ForgetFaultsReply* reply) override;
  grpc::ServerWriteReactor<v1::TableChunk>* ExportTable(grpc::CallbackServerContext* call,
                                                        const v1::ExportTableRequest* request) override;
  grpc::ServerReadReactor<v1::DefineKernelPart>* DefineKernel(grpc::CallbackServerContext* call,
                                                              v1::DefineKernelReply* reply) override;
  grpc::ServerReadReactor<v1::TableChunk>* ImportTable(grpc::CallbackServerContext* call,
                                                       v1::ImportTableReply* reply) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* call, const v1::GetStatusRequest* request,
                                      v1::GetStatusReply* reply) override;
  grpc::ServerUnaryReactor* ListWanted(grpc::CallbackServerContext* call,
                                       const v1::ListWantedRequest* request,
                                       v1::ListWantedReply* reply) override;

 private:
  ServiceContext& context_;
};

/// The agents' service: the lease stream, and artifacts that are too large for it.
class AgentService final : public v1::AgentService::CallbackService {
 public:
  explicit AgentService(ServiceContext& context) : context_(context) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* Serve(
      grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<v1::ArtifactChunk>* PutArtifact(grpc::CallbackServerContext* call,
                                                          v1::PutArtifactReply* reply) override;

 private:
  ServiceContext& context_;
};

}  // namespace cubind
