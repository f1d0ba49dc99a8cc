#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>

#include "base/subprocess.hpp"

// The child's steps between vfork and exec. Internal to base.
namespace cubind {

/// One setrlimit() of the child.
struct ResourceLimit {
  int resource;
  rlimit value;
};

/// Everything the child needs, prepared by the parent: the child itself makes only system calls. Every
/// descriptor lies above every number in `fds` (so that none is overwritten before it has been placed) and
/// closes on exec.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* working_folder;  // null: stay
  int null_fd;
  int stdout_fd;  // -1: the parent's
  int stderr_fd;  // -1: the parent's
  const SubprocessOptions::PassedFd* fds;
  std::size_t fd_count;
  const ResourceLimit* limits;
  std::size_t limit_count;
  int nice;
  bool idle_class;
  int report_fd;  // the write end of a pipe; closed without a word where exec succeeds
  pid_t parent;
};

/// A child that could not start writes this to report_fd before it exits.
struct ChildFault {
  int error_number;
  int step;
};
const char* step_name(const ChildFault& fault);
bool failed_at_exec(const ChildFault& fault);

/// The child's process id, or -1 with errno.
pid_t start_child(const ChildPlan& plan);

}  // namespace cubind
