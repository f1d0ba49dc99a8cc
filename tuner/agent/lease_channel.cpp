#include "tuner/agent/lease_channel.hpp"

#include <utility>

#include "schemas/limits.hpp"

namespace cubind {

v1::AgentMessage LeaseChannel::message() const {
  v1::AgentMessage message;
  message.set_lease_id(lease_id_);
  message.set_fence(fence_);
  return message;
}

void LeaseChannel::store(const v1::Batch& batch) {
  v1::AgentMessage to = message();
  *to.mutable_batch() = batch;
  settle();
  sent_ = stream_.send_numbered(std::move(to));
}

void LeaseChannel::settle() {
  if (const auto sent = std::exchange(sent_, std::nullopt)) {
    stream_.wait_for(*sent, stop_);
  }
}

void LeaseChannel::progress(const v1::Progress& progress) {
  v1::AgentMessage to = message();
  *to.mutable_progress() = progress;
  stream_.send(to);
}

std::optional<std::string> LeaseChannel::fetch_cubin(const Digest& digest) {
  settle();  // the batch in flight may hold it
  return stream_.fetch_cubin(digest, kMaxCubinBytes);
}

void LeaseChannel::put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) {
  stream_.put_artifact(info, zstd_cubin);
}

void LeaseChannel::finish(const v1::JobResult& result) {
  v1::AgentMessage to = message();
  *to.mutable_result() = result;
  settle();
  stream_.wait_for(stream_.send_numbered(std::move(to)), stop_);
}

void LeaseChannel::heartbeat() {
  v1::AgentMessage to = message();
  to.mutable_heartbeat();
  stream_.send(to);
}

}  // namespace cubind
