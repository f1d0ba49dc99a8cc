#include "base/child_start.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cubind {
namespace {

constexpr const char* kSteps[] = {"prctl",       "the parent has died", "setpgid",     "chdir",       "dup2",
                                  "close_range", "setrlimit",           "setpriority", "sigprocmask", "exec"};
enum Step { Prctl, Orphaned, Setpgid, Chdir, Dup, CloseRange, Setrlimit, Nice, Sigmask, Exec };

[[noreturn]] void fail_in_child(const ChildPlan& plan, Step step, int error_number) {
  const ChildFault fault{error_number, step};
  [[maybe_unused]] const ssize_t written = ::write(plan.report_fd, &fault, sizeof(fault));
  ::_exit(127);
}

void close_all_on_exec(const ChildPlan& plan) {
  if (::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0) {
    return;
  }
  // A kernel before 5.11. The limit may be a million, the descriptors in use are few and low.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    fail_in_child(plan, CloseRange, errno);
  }
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 16));
  for (int fd = 3; fd < end; ++fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

void enter_idle_class(const ChildPlan& plan) {
  const sched_param none{};
  if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0 && ::setpriority(PRIO_PROCESS, 0, 19) != 0) {
    fail_in_child(plan, Nice, errno);
  }
}

void reset_signals(const ChildPlan& plan) {
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    ::sigaction(signal, &default_action, nullptr);  // refused for SIGKILL, SIGSTOP and those of the C library
  }
  sigset_t none;
  ::sigemptyset(&none);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0) {
    fail_in_child(plan, Sigmask, errno);
  }
}

void assign_descriptors(const ChildPlan& plan) {
  close_all_on_exec(plan);
  const auto assign = [&plan](int fd, int number) {
    if (fd >= 0 && ::dup2(fd, number) < 0) {
      fail_in_child(plan, Dup, errno);
    }
  };
  assign(plan.null_fd, 0);
  assign(plan.stdout_fd, 1);
  assign(plan.stderr_fd, 2);
  for (std::size_t i = 0; i < plan.fd_count; ++i) {
    assign(plan.fds[i].fd, plan.fds[i].number);
  }
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    fail_in_child(plan, Prctl, errno);
  }
  if (::getppid() != plan.parent) {  // it died before prctl: no signal will come
    fail_in_child(plan, Orphaned, ESRCH);
  }
  if (::setpgid(0, 0) != 0) {
    fail_in_child(plan, Setpgid, errno);
  }
  if (plan.working_folder != nullptr && ::chdir(plan.working_folder) != 0) {
    fail_in_child(plan, Chdir, errno);
  }
  assign_descriptors(plan);
  if (plan.nice != 0 && ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + plan.nice) != 0) {
    fail_in_child(plan, Nice, errno);
  }
  if (plan.idle_class) {
    enter_idle_class(plan);
  }
  reset_signals(plan);
  for (std::size_t i = 0; i < plan.limit_count; ++i) {
    // The system call is used directly: some sanitizers intercept the C library's wrapper.
    if (::syscall(SYS_prlimit64, 0, plan.limits[i].resource, &plan.limits[i].value, nullptr) != 0) {
      fail_in_child(plan, Setrlimit, errno);
    }
  }
  ::execve(plan.program, plan.argv, plan.envp);
  fail_in_child(plan, Exec, errno);
}

}  // namespace

const char* step_name(const ChildFault& fault) { return kSteps[fault.step]; }
bool failed_at_exec(const ChildFault& fault) { return fault.step == Exec; }

// vfork: the child borrows this thread's stack while the thread waits, so the frame must not be shared with
// code that runs afterwards. No handler may run in the child on the parent's memory: all signals stay blocked
// meanwhile.
[[gnu::noinline]] pid_t start_child(const ChildPlan& plan) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) {
    run_child(plan);
  }
  const int error_number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return pid;
}

}  // namespace cubind
