#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cubind::worker {

/// From here on this process computes, speaks on `fd`, and can do nothing else: it opens no file, socket or
/// pipe, starts no program and no process, and reaches no other one. For NVRTC every host file looks absent,
/// in an include and in __has_include. It also goes to "/", and forbids core dumps and writing to files.
/// Descriptors above `fd` are closed. Returns what the kernel of this host could not give, in words for an
/// operator; empty: the sandbox is whole. Throws Error if the kernel refuses a limit, or if a file can still
/// be opened afterwards.
std::vector<std::string> close_all_doors(int fd);

/// After close_all_doors(), if the sandbox is whole: allows a few files in memory (memfd) of bounded size.
/// False: an inherited limit forbids it.
bool allow_memory_files(int fd);

/// Allows `seconds` more of CPU time to this process; above it the kernel sends SIGXCPU, which ends it. 0: no
/// limit.
void allow_cpu_seconds(std::uint64_t seconds);

}  // namespace cubind::worker
