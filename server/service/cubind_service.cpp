#include "server/service/cubind_service.hpp"

#include "server/service/admission.hpp"
#include "server/service/agent_stream.hpp"
#include "server/service/answer_call.hpp"
#include "server/service/artifact_call.hpp"
#include "server/service/backup_call.hpp"
#include "server/service/check_call.hpp"
#include "server/service/comparison_call.hpp"
#include "server/service/define_call.hpp"
#include "server/service/evaluate_call.hpp"
#include "server/service/forget_call.hpp"
#include "server/service/job_list.hpp"
#include "server/service/lists.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "server/service/table_call.hpp"
#include "server/service/tune_call.hpp"
#include "server/service/variant_call.hpp"
#include "server/service/wanted.hpp"

namespace cubind {
namespace {

constexpr const char* kAgentsServeAll = "an agent measures for all of them";

using Unary = CubindService::Unary;
using Writer = CubindService::Writer;
using Reader = CubindService::Reader;
using Bytes = CubindService::Bytes;

/// Answers on the strand where what it asks for lives.
template <typename Request, typename Reply, typename Post, typename Body>
Unary* answer(const OpenCallPtr& open, Request request, Bytes& reply, Post post, Body body) {
  auto* call = new AnswerCall<Request, Reply>(open, std::move(request), reply);
  post(*open, [call, body] { call->answer(body); });
  return call;
}

auto on(Strand& strand) {
  return [&strand](const OpenCall&, Strand::Function work) { strand.post(std::move(work)); };
}

auto on(FairStrand& strand) {
  return
      [&strand](const OpenCall& open, Strand::Function work) { strand.post(open.sharer(), std::move(work)); };
}

/// A list of wants, and records to verify, have entries of all namespaces.
void require_namespaces_of(OpenCall& open, const v1::TuneRequest& request) {
  open.set_namespace(request.namespace_());
  if (request.has_wanted() || request.has_verify()) {
    open.require_all_namespaces("name problems and a namespace instead");
  } else {
    open.require_namespace(request.namespace_());
  }
}

}  // namespace

void refuse_while_draining(const ServiceContext& context) {
  if (context.draining) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
}

void refuse_changes_of_bundle(const ServiceContext& context, Call kind) {
  if (context.signed_records && rule_of(kind).changes) {
    throw Error(
        ErrorCode::FailedPrecondition, std::string(rule_of(kind).name),
        "this daemon serves a signed bundle, which nothing changes: ask a daemon with a store of its own "
        "(cubind without --bundle)");
  }
}

Error daemon_stops(const std::string& job) {
  return {ErrorCode::Unavailable, "daemon",
          "is shutting down. Job " + job +
              " goes on when a daemon runs again: ask again then, or `cubindctl jobs --watch " + job + "`"};
}

void refuse_withdrawn(const std::atomic<bool>& cancelled) {
  if (cancelled) {
    throw Error(ErrorCode::Cancelled, "call", "the caller withdrew");
  }
}

void refuse_to_go_on(const ServiceContext& context, const std::atomic<bool>& cancelled) {
  refuse_while_draining(context);
  refuse_withdrawn(cancelled);
}

Unary* CubindService::GetVariant(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::GetVariant, request->Length(), [&](OpenCallPtr open) {
    return VariantCall::start(context_, std::move(open), *call, *request, *reply);
  });
}

Unary* CubindService::ReportComparison(Context* call, const Bytes* request, Bytes* reply) {
  using Request = v1::ReportComparisonRequest;
  return gated<Unary>(
      context_, *call, Call::ReportComparison, request->Length(), [&](const OpenCallPtr& open) {
        auto asked = parse_message<Request>(*request);
        open->set_namespace(asked.question().namespace_());
        open->require_namespace(asked.question().namespace_());
        return answer<Request, v1::ReportComparisonReply>(
            open, std::move(asked), *reply, on(context_.jobs),
            [this](const auto&, const auto& report, auto&) { report_comparison(context_, report); });
      });
}

Writer* CubindService::GetArtifact(Context* call, const Bytes* request) {
  return gated<Writer>(context_, *call, Call::GetArtifact, request->Length(), [&](OpenCallPtr open) {
    return new GetArtifactCall(context_, std::move(open), parse_message<v1::GetArtifactRequest>(*request));
  });
}

Writer* CubindService::Tune(Context* call, const Bytes* request) {
  return gated<Writer>(context_, *call, Call::Tune, request->Length(), [&](const OpenCallPtr& open) {
    auto asked = parse_message<v1::TuneRequest>(*request);
    require_namespaces_of(*open, asked);
    return TuneCall::tune(context_, open, std::move(asked));
  });
}

Writer* CubindService::Backup(Context* call, const Bytes* request) {
  return gated<Writer>(context_, *call, Call::Backup, request->Length(), [&](OpenCallPtr open) {
    parse_message<v1::BackupRequest>(*request);
    open->require_all_namespaces("a store is copied whole");
    return BackupCall::start(context_, std::move(open));
  });
}

Writer* CubindService::WatchJob(Context* call, const Bytes* request) {
  return gated<Writer>(context_, *call, Call::WatchJob, request->Length(), [&](const OpenCallPtr& open) {
    return TuneCall::watch(context_, open, parse_message<v1::WatchJobRequest>(*request));
  });
}

Unary* CubindService::ListKernels(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ListKernels, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ListKernelsRequest, v1::ListKernelsReply>(
        open, parse_message<v1::ListKernelsRequest>(*request), *reply, on(context_.background),
        [this](const auto&, const auto& asked, auto& out) { list_kernels(context_, asked, out); });
  });
}

Unary* CubindService::CheckKernel(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::CheckKernel, request->Length(), [&](const OpenCallPtr& open) {
    return CheckCall::start(context_, open, parse_message<v1::CheckKernelRequest>(*request), *reply);
  });
}

Unary* CubindService::ListDevices(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ListDevices, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ListDevicesRequest, v1::ListDevicesReply>(
        open, parse_message<v1::ListDevicesRequest>(*request), *reply, on(context_.jobs),
        [this](const auto&, const auto&, auto& out) { list_devices(context_, *out.mutable_devices()); });
  });
}

Unary* CubindService::ListJobs(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ListJobs, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ListJobsRequest, v1::ListJobsReply>(
        open, parse_message<v1::ListJobsRequest>(*request), *reply, on(context_.jobs),
        [this](const auto& caller, const auto& asked, auto& out) {
          list_jobs(context_, caller, asked, out);
        });
  });
}

Unary* CubindService::CancelJob(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::CancelJob, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::CancelJobRequest, v1::CancelJobReply>(
        open, parse_message<v1::CancelJobRequest>(*request), *reply, on(context_.jobs),
        [this](const auto& caller, const auto& asked, auto& out) {
          cancel_job(context_, caller, asked, out);
        });
  });
}

Unary* CubindService::ForgetFaults(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ForgetFaults, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ForgetFaultsRequest, v1::ForgetFaultsReply>(
        open, parse_message<v1::ForgetFaultsRequest>(*request), *reply, on(context_.background),
        [this](const auto&, const auto& asked, auto& out) { forget_faults(context_, asked, out); });
  });
}

Writer* CubindService::ExportTable(Context* call, const Bytes* request) {
  return gated<Writer>(context_, *call, Call::ExportTable, request->Length(), [&](const OpenCallPtr& open) {
    auto asked = parse_message<v1::ExportTableRequest>(*request);
    require_table_namespace(*open, asked.namespace_());
    if (asked.all_trials()) {
      open->require_all_namespaces("leave out --all-trials: trials are shared");
    }
    return ExportCall::start(context_, open, *call, std::move(asked));
  });
}

Reader* CubindService::ImportTable(Context* call, Bytes* reply) {
  return gated<Reader>(context_, *call, Call::ImportTable, 0, [&](const OpenCallPtr& open) {
    return ImportCall::start(std::make_shared<ImportCall>(context_, open, *reply));
  });
}

Reader* CubindService::DefineKernel(Context* call, Bytes* reply) {
  return gated<Reader>(context_, *call, Call::DefineKernel, 0, [&](const OpenCallPtr& open) {
    return DefineCall::start(std::make_shared<DefineCall>(context_, open, *reply));
  });
}

Unary* CubindService::Evaluate(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::Evaluate, request->Length(), [&](const OpenCallPtr& open) {
    auto asked = parse_message<v1::EvaluateRequest>(*request);
    open->set_namespace(asked.namespace_());
    open->require_namespace(asked.namespace_());
    return EvaluateCall::start(context_, open, std::move(asked), *reply);
  });
}

Unary* CubindService::GetStatus(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::GetStatus, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::GetStatusRequest, v1::GetStatusReply>(
        open, parse_message<v1::GetStatusRequest>(*request), *reply, on(context_.jobs),
        [this](const auto& caller, const auto&, auto& out) { get_status(context_, caller.caller(), out); });
  });
}

Unary* CubindService::ListWanted(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ListWanted, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ListWantedRequest, v1::ListWantedReply>(
        open, parse_message<v1::ListWantedRequest>(*request), *reply, on(context_.background),
        [this](const auto& caller, const auto& asked, auto& out) {
          list_wanted(context_, caller.caller(), asked, out);
        });
  });
}

Unary* CubindService::ListRecords(Context* call, const Bytes* request, Bytes* reply) {
  return gated<Unary>(context_, *call, Call::ListRecords, request->Length(), [&](const OpenCallPtr& open) {
    return answer<v1::ListRecordsRequest, v1::ListRecordsReply>(
        open, parse_message<v1::ListRecordsRequest>(*request), *reply, on(context_.background),
        [this](const auto& caller, const auto& asked, auto& out) {
          list_records(context_, caller.caller(), asked, out);
        });
  });
}

grpc::ServerBidiReactor<Bytes, Bytes>* AgentService::Serve(grpc::CallbackServerContext* call) {
  return gated<grpc::ServerBidiReactor<Bytes, Bytes>>(context_, *call, Call::Serve, 0,
                                                      [&](const OpenCallPtr& open) {
                                                        open->require_all_namespaces(kAgentsServeAll);
                                                        return AgentStream::start(context_, open);
                                                      });
}

Reader* AgentService::PutArtifact(grpc::CallbackServerContext* call, Bytes* reply) {
  return gated<Reader>(context_, *call, Call::PutArtifact, 0, [&](const OpenCallPtr& open) {
    open->require_all_namespaces(kAgentsServeAll);
    return PutArtifactCall::start(std::make_shared<PutArtifactCall>(context_, open, *reply));
  });
}

}  // namespace cubind
