#include "tuner/agent/lease/lease_channel.hpp"

#include <utility>

#include "base/log.hpp"
#include "schemas/limits.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

// The tests of killed jobs hold these names against what is measured later.
std::vector<std::string> names_of_blocks(const v1::Batch& batch) {
  std::vector<std::string> names;
  for (const v1::SampleBlock& block : batch.blocks()) {
    names.push_back(digest_from_wire(block.trial_key(), "block.trial_key").hex() + " " +
                    v1::SampleBlock::Stage_Name(block.stage()) + " " + std::to_string(block.index()));
  }
  return names;
}

}  // namespace

v1::AgentMessage LeaseChannel::message() const {
  v1::AgentMessage message;
  message.set_lease_id(lease_id_);
  message.set_fence(fence_);
  return message;
}

LeaseChannel::~LeaseChannel() {
  for (const Sent& one : sent_) {
    stream_.forget(one.sequence);
  }
}

void LeaseChannel::store(v1::Batch batch) {
  std::vector<std::string> names = names_of_blocks(batch);
  v1::AgentMessage to = message();
  *to.mutable_batch() = std::move(batch);
  while (sent_.size() >= kBatchesInFlight) {
    wait_for_oldest();
  }
  sent_.push_back({stream_.send_numbered(std::move(to)), std::move(names)});
}

void LeaseChannel::settle() {
  while (!sent_.empty()) {
    wait_for_oldest();
  }
}

void LeaseChannel::wait_for_oldest() {
  stream_.wait_for(sent_.front().sequence, stop_);
  for (const std::string& block : sent_.front().blocks) {
    log_debug("acknowledged " + block);
  }
  sent_.pop_front();
}

void LeaseChannel::send(const v1::Progress& progress) {
  v1::AgentMessage to = message();
  *to.mutable_progress() = progress;
  stream_.send(to);
}

void LeaseChannel::progress(const v1::Progress& progress) {
  const std::lock_guard lock(mutex_);
  waiting_.reset();
  send(progress);
}

void LeaseChannel::progress_soon(const v1::Progress& progress) {
  const std::lock_guard lock(mutex_);
  waiting_ = progress;
}

void LeaseChannel::send_waiting() {
  const std::lock_guard lock(mutex_);
  if (const auto waiting = std::exchange(waiting_, std::nullopt)) {
    send(*waiting);
  }
}

std::optional<std::string> LeaseChannel::fetch_cubin(const Digest& digest) {
  settle();  // a batch in flight may hold it
  return stream_.fetch_cubin(digest, kMaxCubinBytes);
}

void LeaseChannel::put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) {
  stream_.put_artifact(info, zstd_cubin);
}

void LeaseChannel::finish(const v1::JobResult& result) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.reset();
  }
  v1::AgentMessage to = message();
  *to.mutable_result() = result;
  // Behind batches that may be in flight: a job that is handed back has little time. A refused batch ends the
  // lease, so that its result is refused too.
  sent_.push_back({stream_.send_numbered(std::move(to)), {}});
  settle();
}

void LeaseChannel::heartbeat() {
  v1::AgentMessage to = message();
  to.mutable_heartbeat();
  stream_.send(to);
}

}  // namespace cubind
