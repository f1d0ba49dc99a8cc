// The processes of our own user that use a GPU.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace cubind::worker {

struct OwnProcesses {
  uid_t user = ::geteuid();
  std::string device_files = "/dev/nvidia";  // how their names begin

  /// Whether the process that has this number here is of the user and has a device file open. NVML may number
  /// processes as another pid namespace does: one that has the number here by chance has no GPU open.
  bool contain(std::uint32_t process) const;
};

/// Whether this number may be that of a living process: 0 is one of another pid namespace.
bool may_live(std::uint32_t process);

}  // namespace cubind::worker
