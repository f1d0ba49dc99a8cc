#pragma once

#include <string>

namespace cubind {

/// From here on all threads of this process may compute, allocate, use the descriptors that are open, and
/// speak on the socket `fd`. A system call that names a file fails in the same way whether or not it exists.
/// Every other call, and each that a later kernel brings, fails as if the kernel did not have it. Also sets
/// no_new_privs. Throws Unavailable where the kernel refuses.
void allow_computing_alone(int fd);

/// A filter for a compiler that reads files and starts programs, as the kernel takes it: an array of
/// sock_filter. It and what it starts may make no socket, touch no other process, change no owner, mode or
/// mount, leave nothing in the kernel that outlives it, and use no other gate into the kernel (io_uring, bpf,
/// keys, modules). `may_signal`: the kernel keeps it from other processes by Landlock; else it can signal
/// none at all.
std::string compiler_filter(bool may_signal);

}  // namespace cubind
