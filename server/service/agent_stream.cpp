#include "server/service/agent_stream.hpp"

#include "base/failpoint.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "server/access/unauthenticated.hpp"
#include "server/convert/agent_hello.hpp"
#include "server/convert/agent_messages.hpp"
#include "server/convert/lent_gpu.hpp"
#include "server/service/agent_admission.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"

namespace cubind {
namespace {

constexpr int kMissedHeartbeats = 5;

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AgentStream::start(ServiceContext& context,
                                                                                OpenCallPtr open) {
  const std::shared_ptr<AgentStream> self(new AgentStream(context, std::move(open)));
  self->self_ = self;
  self->post([self] {
    self->last_received_ = self->context_.clock.steady_now();
    self->end_if_silent();
  });
  self->StartRead(&self->bytes_);
  return self.get();
}

void AgentStream::post(Strand::Function work) {
  const RequestScope scope(request_);
  context_.jobs.post(std::move(work));
}

void AgentStream::OnReadDone(bool ok) {
  const RequestScope scope(request_);
  const grpc::Status parsed = guarded([&] {
    if (ok) {
      message_ = parse_message<v1::AgentMessage>(bytes_, "message");
    }
  });
  post([self = shared_from_this(), ok, parsed] {
    if (!ok) {
      self->leave();
      self->finish(grpc::Status::OK);
      return;
    }
    self->last_received_ = self->context_.clock.steady_now();
    const grpc::Status status = parsed.ok() ? guarded([&] { self->handle(); }) : parsed;
    if (!status.ok()) {
      self->refuse(status);
    } else if (!self->finished_) {
      self->StartRead(&self->bytes_);
    }
  });
}

void AgentStream::refuse_revoked() const {
  if (!context_.gate.admits(open_->caller())) {
    throw Unauthenticated(open_->name() + " was revoked or has expired: an admin issues another");
  }
}

void AgentStream::refuse(const grpc::Status& status) {
  log_warning("agent " + agent_id_ + " of " + open_->name() + " is refused: " + status.error_message());
  if (agent_ != 0) {
    context_.scheduler.avoid(agent_);
  }
  leave("what agent " + agent_id_ + " sent is refused: " + status.error_message());
  finish(status);
}

void AgentStream::handle() {
  refuse_revoked();
  if (agent_ == 0) {
    join();
    return;
  }
  switch (message_.body_case()) {
    case v1::AgentMessage::kDevices: {
      AgentProfile offer;
      offer.id = agent_id_;
      offer.token = open_->caller().token;
      offer.devices = devices_from_wire(message_.devices().devices(), "devices.devices");
      check_offer(open_->caller(), offer, *context_.fleet.agents(), *context_.index.snapshot());
      context_.scheduler.agent_devices(agent_, std::move(offer.devices));
      break;
    }
    case v1::AgentMessage::kCheck:
      context_.scheduler.checks().finish(agent_, message_.check().id(), checked(message_.check()));
      break;
    case v1::AgentMessage::kHeartbeat:
      if (!message_.lease_id().empty()) {
        context_.scheduler.heartbeat(agent_, message_.lease_id(), message_.fence());
      }
      break;
    case v1::AgentMessage::kLeaving:
      context_.scheduler.agent_leaves(agent_);
      break;
    case v1::AgentMessage::kProgress:
    case v1::AgentMessage::kBatch:
    case v1::AgentMessage::kResult:
      if (handle_work()) {
        acknowledge();
      }
      break;
    default:
      throw Error(ErrorCode::InvalidArgument, "message", "has no body that may follow a hello");
  }
}

bool AgentStream::handle_work() {
  Scheduler& scheduler = context_.scheduler;
  const std::string& lease = message_.lease_id();
  const std::uint64_t fence = message_.fence();
  if (message_.has_progress()) {
    check_progress(message_.progress());
    return scheduler.progress(agent_, lease, fence, message_.progress());
  }
  if (message_.has_batch()) {
    return scheduler.store_batch(agent_, lease, fence, batch_from_wire(message_.batch()));
  }
  return scheduler.finish(agent_, lease, fence,
                          result_from_wire(message_.result(), context_.clock.wall_now()));
}

void AgentStream::join() {
  if (!message_.has_hello()) {
    throw Error(ErrorCode::InvalidArgument, "message", "the first message of an agent must be its hello");
  }
  const v1::Hello& hello = message_.hello();
  const std::uint32_t protocol = common_protocol(hello);
  AgentProfile profile = profile_from_wire(hello);
  profile.token = open_->caller().token;
  agent_id_ = profile.id;
  check_offer(open_->caller(), profile, *context_.fleet.agents(), *context_.index.snapshot());
  if (context_.scheduler.agents().has(profile)) {
    throw Error(
        ErrorCode::AlreadyExists, "hello.agent_id",
        "an agent with the id " + quoted(profile.id) +
            " is connected: give each agent an --id of its own, or none. If that one is lost, its place is "
            "free in a few seconds");
  }
  v1::DaemonMessage welcome;
  welcome.mutable_welcome()->set_daemon_version(kVersion);
  welcome.mutable_welcome()->set_protocol(protocol);
  welcome.mutable_welcome()->set_heartbeat_ms(static_cast<std::uint32_t>(context_.heartbeat.count()));
  welcome.mutable_welcome()->set_store_id(context_.index.snapshot()->generation().store_id);
  send(std::move(welcome));
  agent_ = context_.scheduler.agent_joined(std::move(profile), *this);
}

void AgentStream::end_if_silent() {
  const std::chrono::milliseconds limit = context_.heartbeat * kMissedHeartbeats;
  if (finished_) {
    return;
  }
  if (context_.clock.steady_now() - last_received_ >= limit) {
    const std::string reason = "the agent said nothing for " + std::to_string(limit.count()) + " ms";
    log_warning(reason + ": it is taken for lost");
    leave();
    finish({grpc::StatusCode::UNAVAILABLE, reason});
    return;
  }
  context_.jobs.post_at(last_received_ + limit, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      const RequestScope scope(self->request_);
      self->end_if_silent();
    }
  });
}

void AgentStream::acknowledge() {
  if (message_.sequence() == 0) {
    return;
  }
  failpoint("daemon.acknowledge");
  v1::DaemonMessage ack;
  ack.mutable_ack()->set_sequence(message_.sequence());
  send(std::move(ack));
}

void AgentStream::grant(const Lease& lease) {
  for (v1::LeaseGrant& page : known_work(lease)) {
    v1::DaemonMessage message;
    *message.mutable_lease() = std::move(page);
    send(std::move(message));
  }
  v1::DaemonMessage message;
  to_wire(lease, *message.mutable_lease());
  send(std::move(message));
}

void AgentStream::announce(const Lease& next) {
  v1::DaemonMessage message;
  announcement_of(next, *message.mutable_next());
  send(std::move(message));
}

void AgentStream::awaited(const std::string& lease_id) {
  v1::DaemonMessage message;
  message.mutable_awaited()->set_lease_id(lease_id);
  send(std::move(message));
}

void AgentStream::end_lease(const std::string& lease_id, const std::string& reason) {
  v1::DaemonMessage message;
  message.mutable_end_lease()->set_lease_id(lease_id);
  message.mutable_end_lease()->set_reason(reason);
  send(std::move(message));
}

void AgentStream::check(const CheckOrder& order) {
  v1::DaemonMessage message;
  to_wire(order, *message.mutable_check());
  send(std::move(message));
}

void AgentStream::drain() {
  v1::DaemonMessage message;
  message.mutable_drain();
  send(std::move(message));
}

void AgentStream::lends(const std::vector<LentGpu>& lent) {
  v1::DaemonMessage message;
  to_wire(lent, *message.mutable_lends());
  send(std::move(message));
}

void AgentStream::send(v1::DaemonMessage message) {
  waiting_.push_back(std::move(message));
  write_next();
}

void AgentStream::write_next() {
  if (is_writing_ || finished_ || waiting_.empty()) {
    return;
  }
  writing_ = print_message(waiting_.front());
  waiting_.pop_front();
  is_writing_ = true;
  StartWrite(&writing_);
}

void AgentStream::OnWriteDone(bool ok) {
  post([self = shared_from_this(), ok] {
    self->is_writing_ = false;
    if (ok) {
      self->write_next();
    }
  });
}

void AgentStream::OnCancel() {
  post([self = shared_from_this()] {
    self->leave();
    self->finish({grpc::StatusCode::CANCELLED, "the agent went away"});
  });
}

void AgentStream::OnDone() {
  post([self = shared_from_this()] { self->leave(); });
  self_.reset();
}

void AgentStream::leave(const std::string& reason) {
  if (agent_ != 0) {
    context_.scheduler.agent_left(std::exchange(agent_, 0), reason);
  }
}

void AgentStream::finish(const grpc::Status& status) {
  if (!std::exchange(finished_, true)) {
    Finish(open_->ends_with(status));
  }
}

}  // namespace cubind
