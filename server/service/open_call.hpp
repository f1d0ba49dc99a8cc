// A call that the gate has let in.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "server/access/caller_limits.hpp"
#include "server/access/gate.hpp"
#include "server/service/context.hpp"

namespace cubind {

/// Counts in its caller's limits while it lives: until gRPC needs the call no longer. Thread-safe but for
/// hold_bytes() and set_namespace().
class OpenCall {
 public:
  /// Throws ResourceExhausted.
  OpenCall(const ServiceContext& context, const grpc::CallbackServerContext& call, std::string peer,
           Call kind, Gate::CallerPtr caller, std::uint64_t request_bytes);

  const Caller& caller() const { return *caller_; }
  /// Whether another user than the daemon's own calls: only that one opens the Unix socket.
  bool is_foreign() const { return caller_->known != Caller::Known::BySocket; }
  /// The caller's, for counts, logs and messages.
  const std::string& name() const { return name_; }
  /// See process_of() and sharer_of().
  const std::string& process() const { return process_; }
  const std::string& sharer() const { return sharer_; }
  /// Of other things that the caller holds. Throws ResourceExhausted.
  CallerLimits::Hold hold(Held what) const;
  /// The call holds so much more. Throws ResourceExhausted.
  void hold_bytes(std::uint64_t bytes) { bytes_.add(bytes); }
  /// Of the request, for the audit log.
  void set_namespace(const std::string& name) { name_space_ = name; }

  /// Each throws PermissionDenied.
  void require_namespace(const std::string& name) const;
  void require_all_namespaces(const std::string& how) const;
  /// Throws NotFound for a job that the caller may not see, as for none; the audit log has the reason.
  void require_job(const std::string& id, const std::string& name_space) const;

  void note_admitted() const;
  void note_refused(const std::string& why) const;
  /// The call ends with this status. The audit log has it if it refuses the caller.
  const grpc::Status& ends_with(const grpc::Status& status) const;

 private:
  const ServiceContext& context_;
  const Call kind_;
  const Gate::CallerPtr caller_;
  const std::string peer_, name_, process_, sharer_;
  std::string name_space_;
  const CallerLimits::Hold call_;
  CallerLimits::Hold bytes_;
};

using OpenCallPtr = std::shared_ptr<OpenCall>;

}  // namespace cubind
