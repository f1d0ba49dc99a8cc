// One agent's stream: leases go out, results come in.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>

#include "base/request_id.hpp"
#include "schemas/agent.pb.h"
#include "server/jobs/agent.hpp"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

/// Messages are handled on the job thread, one at a time: the next is read when one has been handled.
class AgentStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public AgentLink,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* start(ServiceContext& context,
                                                                            OpenCallPtr open);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // AgentLink, on the job thread:
  void grant(const Lease& lease) override;
  void announce(const Lease& next) override;
  void awaited(const std::string& lease_id) override;
  void end_lease(const std::string& lease_id, const std::string& reason) override;
  void check(const CheckOrder& order) override;
  void drain() override;
  void lends(const std::vector<LentGpu>& lent) override;

 private:
  AgentStream(ServiceContext& context, OpenCallPtr open)
      : context_(context), open_(std::move(open)), request_(current_request()) {}

  /// On the job thread, for the stream's request.
  void post(Strand::Function work);

  void handle();
  void join();
  /// Throws Unauthenticated once the agent's token is revoked or has expired.
  void refuse_revoked() const;
  /// What the agent sent is logged, and ends its stream.
  void refuse(const grpc::Status& status);
  /// False: refused, nothing is acknowledged.
  bool handle_work();
  void acknowledge();
  void send(v1::DaemonMessage message);
  void write_next();
  void leave(const std::string& reason = "the agent left");
  /// Ends the stream of an agent that says nothing, not even that it is there; looks again when it may next
  /// be so.
  void end_if_silent();
  void finish(const grpc::Status& status);

  ServiceContext& context_;
  const OpenCallPtr open_;
  const RequestId request_;  // for the log
  std::shared_ptr<AgentStream> self_;
  grpc::ByteBuffer bytes_;  // of the message
  v1::AgentMessage message_;
  // On the job thread:
  std::uint64_t agent_ = 0;  // 0: has not said hello
  std::string agent_id_;
  std::chrono::steady_clock::time_point last_received_{};
  std::deque<v1::DaemonMessage> waiting_;
  grpc::ByteBuffer writing_;
  bool is_writing_ = false;
  bool finished_ = false;
};

}  // namespace cubind
