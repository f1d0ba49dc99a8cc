#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/lease/lease_stream.hpp"

namespace cubind {

/// A lease of the stream: every message names it and repeats its fencing number.
class LeaseChannel final : public JobChannel {
 public:
  LeaseChannel(LeaseStream& stream, const v1::LeaseGrant& lease, const JobStop& stop)
      : stream_(stream),
        lease_id_(lease.lease_id()),
        fence_(lease.fence()),
        stop_(stop),
        awaited_(!lease.background()) {}
  ~LeaseChannel() override;
  LeaseChannel(const LeaseChannel&) = delete;
  LeaseChannel& operator=(const LeaseChannel&) = delete;

  void store(v1::Batch batch) override;
  void settle() override;
  void progress(const v1::Progress& progress) override;
  void progress_soon(const v1::Progress& progress) override;
  std::optional<std::string> fetch_cubin(const Digest& digest) override;
  void put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) override;
  bool is_awaited() const override { return awaited_; }
  /// From any thread.
  void set_awaited() { awaited_ = true; }
  /// The last message of the lease; returns when the daemon has it.
  void finish(const v1::JobResult& result);
  /// From any thread.
  void heartbeat();
  /// Sends what progress_soon() has left. From any thread.
  void send_waiting();

 private:
  struct Sent {
    std::uint64_t sequence = 0;
    std::vector<std::string> blocks;  // for the log
  };
  v1::AgentMessage message() const;
  void send(const v1::Progress& progress);
  void wait_for_oldest();

  LeaseStream& stream_;
  const std::string lease_id_;
  const std::uint64_t fence_;
  const JobStop& stop_;
  std::atomic<bool> awaited_;
  std::mutex mutex_;  // for waiting_, and the order of reports
  std::optional<v1::Progress> waiting_;
  std::deque<Sent> sent_;  // batches and the result that are not acknowledged yet, oldest first
};

}  // namespace cubind
