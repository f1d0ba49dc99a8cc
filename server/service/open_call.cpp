#include "server/service/open_call.hpp"

#include <utility>

#include "server/access/audit_log.hpp"
#include "server/convert/limits.hpp"
#include "server/jobs/job_event.hpp"
#include "server/service/sharer.hpp"

namespace cubind {

OpenCall::OpenCall(const ServiceContext& context, const grpc::CallbackServerContext& call, std::string peer,
                   Call kind, Gate::CallerPtr caller, std::uint64_t request_bytes)
    : context_(context),
      kind_(kind),
      caller_(std::move(caller)),
      peer_(std::move(peer)),
      name_(caller_->to_string()),
      process_(process_of(call, peer_)),
      sharer_(sharer_of(process_, *caller_)),
      call_(context.limits.take(name_, Held::Calls)),
      bytes_(context.limits.take(name_, Held::Bytes, request_bytes)) {}

CallerLimits::Hold OpenCall::hold(Held what) const { return context_.limits.take(name_, what); }

void OpenCall::require_namespace(const std::string& name) const {
  cubind::require_namespace(*caller_, kind_, name);
}

void OpenCall::require_all_namespaces(const std::string& how) const {
  cubind::require_all_namespaces(*caller_, kind_, how);
}

void OpenCall::require_job(const std::string& id, const std::string& name_space) const {
  if (!covers(caller_->namespaces, name_space)) {
    note_refused("job " + id + " is of a namespace that is not open to the caller");
    throw no_such_job(id);
  }
}

void OpenCall::note_admitted() const {
  context_.audit.admitted({.call = kind_,
                           .caller = name_,
                           .peer = peer_,
                           .name_space = name_space_.substr(0, kMaxNameBytes),
                           .outcome = ""});
}

void OpenCall::note_refused(const std::string& why) const {
  context_.audit.refused({.call = kind_,
                          .caller = name_,
                          .peer = peer_,
                          .name_space = name_space_.substr(0, kMaxNameBytes),
                          .outcome = why});
}

const grpc::Status& OpenCall::ends_with(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
      status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    note_refused(status.error_message());
  }
  return status;
}

}  // namespace cubind
