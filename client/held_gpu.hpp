// The GPU that this process has a context on, to be lent to the daemon's agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cubind {

/// What the agent has to know of a lend, but for the memory that the process holds.
struct HeldGpu {
  std::string uuid;
  std::uint32_t process = 0;
  std::string host;  // where `process` is valid: as process_host()
};

/// A visible device by its number, or the current one (absent). Its primary context is synchronized: nothing
/// that was launched before runs any more. Absent: there is no driver, the process has no primary context on
/// the device, or the context is lost or captured into a graph. Makes no context. Safe on many threads.
std::optional<HeldGpu> synchronized_gpu(std::optional<std::size_t> ordinal = std::nullopt);

}  // namespace cubind
