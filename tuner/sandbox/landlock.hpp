#pragma once

namespace cubind {

/// Version of the kernel's Landlock; 0: it has none, or does not let this process use it.
int landlock_version();

/// From here on this thread, and each that it starts, opens no file, creates, renames and removes none, and
/// starts no program. From version 4 on it neither opens nor accepts TCP connections, from version 6 on it
/// sends no signal to other processes. Descriptors that are open stay usable. Also sets no_new_privs. Throws
/// Unavailable where landlock_version() is 0 or the kernel refuses.
void deny_all_files();

}  // namespace cubind
