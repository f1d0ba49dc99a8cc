// The GPU that this process has a context on and may lend to the daemon's agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cubind {

/// What the agent needs to know about a lend, except the memory that the process holds.
struct HeldGpu {
  std::string uuid;
  std::uint32_t process = 0;
  std::string host;  // where `process` is valid, as from process_host()
};

/// The visible device with this number (absent: the current one), after synchronizing its primary context:
/// nothing that was launched before still runs. Returns nothing if there is no driver, the process has no
/// primary context on the device, or the context is lost or captured into a graph. Creates no context. Safe
/// on many threads.
std::optional<HeldGpu> synchronized_gpu(std::optional<std::size_t> ordinal = std::nullopt);

}  // namespace cubind
