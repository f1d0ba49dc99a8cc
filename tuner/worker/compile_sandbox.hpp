#pragma once

#include <cstdint>

namespace cubind::worker {

/// From here on this process can open no file, socket or pipe: every number below the lowest allowed one is
/// taken, and the limit lies right above `fd`. For NVRTC every host file then looks absent, in an include and
/// in __has_include. It also goes to "/", and forbids core dumps and writing to files. Descriptors above `fd`
/// are closed. Throws Error if the kernel refuses, or if a file can still be opened afterwards.
void close_all_doors(int fd);

/// Allows `seconds` more of CPU time to this process; above it the kernel sends SIGXCPU, which ends it. 0: no
/// limit.
void allow_cpu_seconds(std::uint64_t seconds);

}  // namespace cubind::worker
