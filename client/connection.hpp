// The rpcs of the daemon as functions on messages: address, channel, deadlines, status to Error. Everything
// that needs gRPC is behind this header.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "schemas/cubind.pb.h"
#include "schemas/keepalive.hpp"

namespace cubind {

/// `given`, else CUBIND_ADDRESS, else the socket of the user's daemon, else that of the system's
/// (/run/cubind/cubind.sock) where only that exists. Throws Error(InvalidArgument) for any other text than
/// unix:///path, host:port and tls://host:port.
std::string resolve_address(const std::string& given);

using OnTuneEvent = std::function<void(const v1::TuneEvent&)>;
using Milliseconds = std::chrono::milliseconds;

/// When a daemon that says nothing counts as dead, so that a call without a deadline ends. A stopped one
/// still takes connections: the system does that for it.
struct ConnectionTimes {
  Milliseconds connect{10'000};
  Milliseconds ping{kPingMs};  // between two questions whether it lives, during calls
  Milliseconds answer{kPingAnswerMs};
};

struct StoredArtifact {
  v1::ArtifactInfo info;
  std::string zstd;
};

/// Safe on many threads. Connects when the first call is made.
///
/// Every call throws Error with the code and message of the daemon. If nothing listens, it is Unavailable at
/// the address, and the message says how to start a daemon. A call without `deadline` waits as long as the
/// daemon lives.
class Connection {
 public:
  explicit Connection(std::string address, const ConnectionTimes& times = {});
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  const std::string& address() const;

  v1::GetVariantReply get_variant(const v1::GetVariantRequest& request, Milliseconds deadline) const;
  /// Throws NotFound, with the nearest names, if the daemon answers and has no such kernel. A caller without
  /// a GPU learns of a slip in the name first.
  void require_kernel(const std::string& name, Milliseconds deadline) const;
  /// The artifact in its stored form, compressed, put together from its chunks.
  std::string get_artifact(const Digest& digest, Milliseconds deadline) const;
  /// The same with what the daemon knows of it.
  StoredArtifact stored_artifact(const Digest& digest, Milliseconds deadline) const;

  /// Calls `on_event` for each event until the daemon has ended the stream. A stop request ends the call with
  /// Error(Cancelled); the jobs go on.
  void tune(const v1::TuneRequest& request, const OnTuneEvent& on_event, const std::stop_token& stop,
            std::optional<Milliseconds> deadline) const;
  /// The effect that the same request to tune() would have.
  v1::PlanTuneReply plan_tune(const v1::TuneRequest& request, Milliseconds deadline) const;
  void watch_job(const std::string& id, const OnTuneEvent& on_event, const std::stop_token& stop,
                 std::optional<Milliseconds> deadline) const;

  v1::ListKernelsReply list_kernels(Milliseconds deadline, bool defined = false) const;
  v1::CheckKernelReply check_kernel(const v1::CheckKernelRequest& request, Milliseconds deadline) const;
  v1::ListDevicesReply list_devices(Milliseconds deadline) const;
  /// All pages in one; the deadline is that of each.
  v1::ListJobsReply list_jobs(bool include_ended, Milliseconds deadline) const;
  v1::Job get_job(const std::string& id, Milliseconds deadline) const;
  v1::Job cancel_job(const std::string& id, Milliseconds deadline) const;
  v1::ForgetFaultsReply forget_faults(const v1::ForgetFaultsRequest& request, Milliseconds deadline) const;
  v1::ForgetDeviceReply forget_device(const std::string& label, Milliseconds deadline) const;
  v1::GetStatusReply get_status(Milliseconds deadline) const;
  /// The state of the whole daemon by gRPC's health service.
  bool is_serving(Milliseconds deadline) const;
  v1::ListWantedReply list_wanted(const v1::ListWantedRequest& request, Milliseconds deadline) const;

  /// The table in one chunk, with every field of the first one.
  v1::TableChunk export_table(const v1::ExportTableRequest& request, Milliseconds deadline) const;
  /// `file` is for the daemon's messages.
  v1::ImportTableReply import_table(const std::string& text, const std::string& file,
                                    const std::string& name_space, Milliseconds deadline) const;

  /// Calls `take` for each piece of a copy of the daemon's store; gives their sum of bytes. Throws DataLoss
  /// where they are not all.
  std::uint64_t backup(const std::function<void(std::string_view)>& take,
                       std::optional<Milliseconds> deadline) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
