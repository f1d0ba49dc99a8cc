// The daemon's rpcs as functions on messages. Handles address, channel and deadlines, and turns a status into
// an Error. Everything that needs gRPC is behind this header.
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

/// `given`, else CUBIND_ADDRESS, else the socket of the user's daemon; if only the system's socket
/// (/run/cubind/cubind.sock) exists, that one. Throws Error(InvalidArgument) for any text but unix:///path,
/// host:port and tls://host:port.
std::string resolve_address(const std::string& given);

/// Of the token with which a Connection that is opened now calls; zero: of none. Another token may show other
/// things.
Digest caller_digest();

using OnTuneEvent = std::function<void(const v1::TuneEvent&)>;
using Milliseconds = std::chrono::milliseconds;

/// After these times a silent daemon counts as dead, so that a call without a deadline ends. The operating
/// system still accepts connections for a stopped process.
struct ConnectionTimes {
  Milliseconds connect{10'000};
  Milliseconds ping{kPingMs};  // interval between pings during a call
  Milliseconds answer{kPingAnswerMs};
};

struct StoredArtifact {
  v1::ArtifactInfo info;
  std::string zstd;
};

/// Safe on many threads. Connects with the first call.
///
/// Every call throws Error with the daemon's code and message. If nothing listens at the address, the code is
/// Unavailable, and the message says how to start a daemon. A call without `deadline` waits as long as the
/// daemon lives.
class Connection {
 public:
  explicit Connection(std::string address, const ConnectionTimes& times = {});
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  const std::string& address() const;

  v1::GetVariantReply get_variant(const v1::GetVariantRequest& request, Milliseconds deadline) const;
  /// Throws NotFound, with the nearest names, if the daemon answers and does not know the kernel. So a caller
  /// without a GPU sees a wrong name before the missing GPU.
  void require_kernel(const std::string& name, Milliseconds deadline) const;
  /// The artifact in its stored, compressed form, joined from its chunks.
  std::string get_artifact(const Digest& digest, Milliseconds deadline) const;
  /// The same with the daemon's information about it.
  StoredArtifact stored_artifact(const Digest& digest, Milliseconds deadline) const;

  /// Calls `on_event` for each event until the daemon ends the stream. A stop request ends the call with
  /// Error(Cancelled); the jobs continue.
  void tune(const v1::TuneRequest& request, const OnTuneEvent& on_event, const std::stop_token& stop,
            std::optional<Milliseconds> deadline) const;
  /// Describes what tune() would do with this request.
  void watch_job(const std::string& id, const OnTuneEvent& on_event, const std::stop_token& stop,
                 std::optional<Milliseconds> deadline) const;

  v1::ListKernelsReply list_kernels(Milliseconds deadline, bool defined = false) const;
  v1::CheckKernelReply check_kernel(const v1::CheckKernelRequest& request, Milliseconds deadline) const;
  v1::EvaluateReply evaluate(const v1::EvaluateRequest& request, Milliseconds deadline) const;
  v1::ListDevicesReply list_devices(Milliseconds deadline) const;
  /// All pages in one reply; the deadline applies to each page.
  v1::ListJobsReply list_jobs(bool include_ended, Milliseconds deadline) const;
  v1::Job get_job(const std::string& id, Milliseconds deadline) const;
  v1::Job cancel_job(const std::string& id, Milliseconds deadline) const;
  v1::ForgetFaultsReply forget_faults(const v1::ForgetFaultsRequest& request, Milliseconds deadline) const;
  v1::GetStatusReply get_status(Milliseconds deadline) const;
  /// Whether gRPC's health service reports the daemon as serving.
  bool is_serving(Milliseconds deadline) const;
  v1::ListWantedReply list_wanted(const v1::ListWantedRequest& request, Milliseconds deadline) const;
  /// From the request's `skip` to the end. Throws Error(Aborted) if records change meanwhile.
  std::vector<v1::ListedRecord> list_records(v1::ListRecordsRequest request, Milliseconds deadline) const;

  /// The table joined into one chunk, with every field of the first one.
  v1::TableChunk export_table(const v1::ExportTableRequest& request, Milliseconds deadline) const;
  /// `file` is for the daemon's messages.
  v1::ImportTableReply import_table(const std::string& text, const std::string& file,
                                    const std::string& name_space, Milliseconds deadline) const;

  /// Calls `take` for each piece of a copy of the daemon's store and returns the total number of bytes.
  /// Throws DataLoss if pieces are missing.
  std::uint64_t backup(const std::function<void(std::string_view)>& take,
                       std::optional<Milliseconds> deadline) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
