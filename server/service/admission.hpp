// The gate in front of each call: nothing of a call runs before the caller is known and allowed.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/request_id.hpp"
#include "schemas/status_mark.hpp"
#include "server/access/gate.hpp"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"
#include "server/service/status.hpp"

namespace cubind {

/// Throws Unauthenticated.
Gate::CallerPtr caller_behind(const ServiceContext& context, const grpc::CallbackServerContext& call,
                              const std::string& peer);

/// The caller's x-request-id if it is well formed, else a new one.
RequestId request_of(const grpc::CallbackServerContext& call);

/// A call that ends as it begins. Deletes itself, and then lets go of the open call.
template <typename Reactor>
class EndedCall final : public Reactor {
 public:
  explicit EndedCall(const grpc::Status& status, OpenCallPtr open = nullptr) : open_(std::move(open)) {
    this->Finish(status);
  }
  void OnDone() override { delete this; }
  /// On the thread that has sent the answer: what OnDone does is short, and a change of threads costs more
  /// than a known answer. gRPC's own DefaultReactor does the same.
  bool InternalInlineable() override { return true; }

 private:
  const OpenCallPtr open_;
};

/// For the audit log: the gate refused the call. `caller` is null if it is not known.
void note_refused(const ServiceContext& context, const grpc::CallbackServerContext& call, Call kind,
                  const Caller* caller, const grpc::Status& status);

/// `body` of the call that the gate lets in, or a refusal. `body` may refuse too, by an Error. However the
/// call ends, its status has the daemon's mark.
template <typename Reactor, typename Body>
Reactor* gated(const ServiceContext& context, grpc::CallbackServerContext& call, Call kind,
               std::uint64_t request_bytes, Body body) {
  call.AddTrailingMetadata(kStatusMark, "1");
  const std::function<RequestId()> make_id = [&call] { return request_of(call); };
  const RequestScope scope(make_id);
  Reactor* reactor = nullptr;
  Gate::CallerPtr caller;
  OpenCallPtr open;
  const grpc::Status status = guarded([&] {
    std::string peer = call.peer();
    caller = caller_behind(context, call, peer);
    require(*caller, kind);
    refuse_changes_of_bundle(context, kind);
    open = std::make_shared<OpenCall>(context, call, std::move(peer), kind, caller, request_bytes);
    reactor = body(open);
  });
  if (!status.ok()) {
    open ? open->note_refused(status.error_message())
         : note_refused(context, call, kind, caller.get(), status);
    return new EndedCall<Reactor>(status);
  }
  if (rule_of(kind).changes && kind != Call::ImportTable) {  // whose first message names the namespace
    open->note_admitted();
  }
  return reactor;
}

}  // namespace cubind
