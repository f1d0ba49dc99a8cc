#pragma once

#include <string_view>

namespace cubind {

/// A place where a test can hold a process, so that it can be killed there. Does nothing unless the
/// environment variable CUBIND_FAILPOINTS names a folder and that folder has a file `name`, which holds a
/// number. Where the number is above zero, it is made one smaller and the process goes on. At zero, the file
/// `name`.reached is made and the process waits until the file `name` is gone. A place is used by one thread
/// at a time.
void failpoint(std::string_view name);

}  // namespace cubind
