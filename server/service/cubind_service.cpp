#include "server/service/cubind_service.hpp"

#include "server/service/agent_stream.hpp"
#include "server/service/artifact_call.hpp"
#include "server/service/check_call.hpp"
#include "server/service/define_call.hpp"
#include "server/service/forget_call.hpp"
#include "server/service/job_list.hpp"
#include "server/service/lists.hpp"
#include "server/service/plan_call.hpp"
#include "server/service/status.hpp"
#include "server/service/table_call.hpp"
#include "server/service/tune_call.hpp"
#include "server/service/variant_call.hpp"
#include "server/service/wanted.hpp"

namespace cubind {
namespace {

/// Answers on the strand where what it asks for lives. The request and the reply stay valid until Finish.
template <typename Body>
grpc::ServerUnaryReactor* answer_on(Strand& strand, grpc::CallbackServerContext* call, Body body) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  strand.post([reactor, body] { reactor->Finish(guarded(body)); });
  return reactor;
}

}  // namespace

void refuse_while_draining(const ServiceContext& context) {
  if (context.draining) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
}

void refuse_to_go_on(const ServiceContext& context, const std::atomic<bool>& cancelled) {
  refuse_while_draining(context);
  if (cancelled) {
    throw Error(ErrorCode::Cancelled, "call", "the caller withdrew");
  }
}

grpc::ServerUnaryReactor* CubindService::GetVariant(grpc::CallbackServerContext* call,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* reply) {
  return VariantCall::start(context_, *call, *request, *reply);
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* CubindService::GetArtifact(
    grpc::CallbackServerContext*, const v1::GetArtifactRequest* request) {
  return new GetArtifactCall(context_, *request);
}

grpc::ServerWriteReactor<v1::TuneEvent>* CubindService::Tune(grpc::CallbackServerContext*,
                                                             const v1::TuneRequest* request) {
  return TuneCall::tune(context_, *request);
}

grpc::ServerUnaryReactor* CubindService::PlanTune(grpc::CallbackServerContext* call,
                                                  const v1::TuneRequest* request, v1::PlanTuneReply* reply) {
  return plan_tune(context_, *call, *request, *reply);
}

grpc::ServerWriteReactor<v1::TuneEvent>* CubindService::WatchJob(grpc::CallbackServerContext*,
                                                                 const v1::WatchJobRequest* request) {
  return TuneCall::watch(context_, *request);
}

grpc::ServerUnaryReactor* CubindService::ListKernels(grpc::CallbackServerContext* call,
                                                     const v1::ListKernelsRequest* request,
                                                     v1::ListKernelsReply* reply) {
  return answer_on(context_.background, call,
                   [this, request, reply] { list_kernels(context_, *request, *reply); });
}

grpc::ServerUnaryReactor* CubindService::CheckKernel(grpc::CallbackServerContext* call,
                                                     const v1::CheckKernelRequest* request,
                                                     v1::CheckKernelReply* reply) {
  return CheckCall::start(context_, *call, *request, *reply);
}

grpc::ServerUnaryReactor* CubindService::ListDevices(grpc::CallbackServerContext* call,
                                                     const v1::ListDevicesRequest*,
                                                     v1::ListDevicesReply* reply) {
  return answer_on(context_.jobs, call, [this, reply] { list_devices(context_, *reply->mutable_devices()); });
}

grpc::ServerUnaryReactor* CubindService::ListJobs(grpc::CallbackServerContext* call,
                                                  const v1::ListJobsRequest* request,
                                                  v1::ListJobsReply* reply) {
  return answer_on(context_.jobs, call, [this, request, reply] { list_jobs(context_, *request, *reply); });
}

grpc::ServerUnaryReactor* CubindService::CancelJob(grpc::CallbackServerContext* call,
                                                   const v1::CancelJobRequest* request,
                                                   v1::CancelJobReply* reply) {
  return answer_on(context_.jobs, call, [this, request, reply] { cancel_job(context_, *request, *reply); });
}

grpc::ServerUnaryReactor* CubindService::ForgetFaults(grpc::CallbackServerContext* call,
                                                      const v1::ForgetFaultsRequest* request,
                                                      v1::ForgetFaultsReply* reply) {
  return answer_on(context_.background, call,
                   [this, request, reply] { forget_faults(context_, *request, *reply); });
}

grpc::ServerWriteReactor<v1::TableChunk>* CubindService::ExportTable(grpc::CallbackServerContext*,
                                                                     const v1::ExportTableRequest* request) {
  return ExportCall::start(context_, *request);
}

grpc::ServerReadReactor<v1::TableChunk>* CubindService::ImportTable(grpc::CallbackServerContext*,
                                                                    v1::ImportTableReply* reply) {
  return ImportCall::start(std::make_shared<ImportCall>(context_, *reply));
}

grpc::ServerReadReactor<v1::DefineKernelPart>* CubindService::DefineKernel(grpc::CallbackServerContext*,
                                                                           v1::DefineKernelReply* reply) {
  return DefineCall::start(std::make_shared<DefineCall>(context_, *reply));
}

grpc::ServerUnaryReactor* CubindService::GetStatus(grpc::CallbackServerContext* call,
                                                   const v1::GetStatusRequest*, v1::GetStatusReply* reply) {
  return answer_on(context_.jobs, call, [this, reply] { get_status(context_, *reply); });
}

grpc::ServerUnaryReactor* CubindService::ListWanted(grpc::CallbackServerContext* call,
                                                    const v1::ListWantedRequest* request,
                                                    v1::ListWantedReply* reply) {
  return answer_on(context_.background, call,
                   [this, request, reply] { list_wanted(context_, *request, *reply); });
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* AgentService::Serve(
    grpc::CallbackServerContext*) {
  return AgentStream::start(context_);
}

grpc::ServerReadReactor<v1::ArtifactChunk>* AgentService::PutArtifact(grpc::CallbackServerContext*,
                                                                      v1::PutArtifactReply*) {
  return PutArtifactCall::start(std::make_shared<PutArtifactCall>(context_));
}

}  // namespace cubind
