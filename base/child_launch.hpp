#pragma once

#include <sys/types.h>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"

// The parent's part in making a child. Internal to base.
namespace cubind {

/// A child that has begun, with the read ends of its pipes.
struct LaunchedChild {
  pid_t pid = -1;  // runs the program; not yet reaped
  UniqueFd stdout_pipe;
  UniqueFd stderr_pipe;
};

/// Contract and errors: Subprocess::spawn.
LaunchedChild launch_child(const SubprocessOptions& options);

}  // namespace cubind
