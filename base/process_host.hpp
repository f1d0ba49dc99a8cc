#pragma once

#include <string>

namespace cubind {

/// Where this process's id is valid: "BOOT_ID/INODE", of the machine's start and of the pid namespace. Empty:
/// /proc does not tell.
std::string process_host();

/// As people call the machine; at most 63 bytes, possibly empty.
std::string host_name();

}  // namespace cubind
