#include "base/subprocess.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// ---- What the child does between vfork and exec: system calls on data that the parent has prepared ----

struct Limit {
  int resource;
  rlimit value;
};

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
  const Limit* limits;
  std::size_t limit_count;
  int nice;
  int report_fd;
  pid_t parent;
};

// What a failed child writes to report_fd.
struct ChildFault {
  int error_number;
  int step;
};
constexpr const char* kSteps[] = {"prctl",       "the parent has died", "setpgid",   "chdir",   "dup2",
                                  "close_range", "setrlimit",           "setpriority", "sigprocmask", "exec"};
enum Step { kPrctl, kOrphaned, kSetpgid, kChdir, kDup, kCloseRange, kSetrlimit, kNice, kSigmask, kExec };

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
    fail_in_child(plan, kCloseRange, errno);
  }
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 16));
  for (int fd = 3; fd < end; ++fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
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
    fail_in_child(plan, kSigmask, errno);
  }
}

void place_descriptors(const ChildPlan& plan) {
  close_all_on_exec(plan);
  const auto place = [&plan](int fd, int number) {
    if (fd >= 0 && ::dup2(fd, number) < 0) {
      fail_in_child(plan, kDup, errno);
    }
  };
  place(plan.null_fd, 0);
  place(plan.stdout_fd, 1);
  place(plan.stderr_fd, 2);
  for (std::size_t i = 0; i < plan.fd_count; ++i) {
    place(plan.fds[i].fd, plan.fds[i].number);
  }
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    fail_in_child(plan, kPrctl, errno);
  }
  if (::getppid() != plan.parent) {  // it died before prctl: nobody will send the signal
    fail_in_child(plan, kOrphaned, ESRCH);
  }
  if (::setpgid(0, 0) != 0) {
    fail_in_child(plan, kSetpgid, errno);
  }
  if (plan.working_folder != nullptr && ::chdir(plan.working_folder) != 0) {
    fail_in_child(plan, kChdir, errno);
  }
  place_descriptors(plan);
  if (plan.nice != 0 && ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + plan.nice) != 0) {
    fail_in_child(plan, kNice, errno);
  }
  reset_signals(plan);
  for (std::size_t i = 0; i < plan.limit_count; ++i) {
    // By the system call: the C library's wrapper is prlimit, which some sanitizers intercept.
    if (::syscall(SYS_prlimit64, 0, plan.limits[i].resource, &plan.limits[i].value, nullptr) != 0) {
      fail_in_child(plan, kSetrlimit, errno);
    }
  }
  ::execve(plan.program, plan.argv, plan.envp);
  fail_in_child(plan, kExec, errno);
}

// vfork: the child borrows this thread's stack while the thread waits, so the frame must not be shared with code that
// runs afterwards. No handler may run in the child on the parent's memory: all signals stay blocked meanwhile.
[[gnu::noinline]] pid_t vfork_and_run(const ChildPlan& plan) {
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

// ---- Preparation in the parent ----

UniqueFd open_null() {
  UniqueFd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) {
    throw system_error("/dev/null", "cannot open", errno);
  }
  return fd;
}

std::pair<UniqueFd, UniqueFd> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    throw system_error("pipe", "cannot create", errno);
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// A copy above every number that the child will overwrite.
UniqueFd copy_above(int fd, int lowest) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, lowest));
  if (!copy) {
    throw system_error("descriptor " + std::to_string(fd), "cannot copy", errno);
  }
  return copy;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

std::vector<Limit> limits_of(const SubprocessOptions& options) {
  std::vector<Limit> limits;
  const auto add = [&limits](int resource, const std::optional<std::uint64_t>& value, std::uint64_t grace) {
    if (value) {
      limits.push_back({resource, {static_cast<rlim_t>(*value), static_cast<rlim_t>(*value + grace)}});
    }
  };
  add(RLIMIT_CPU, options.limit_cpu_seconds, 2);
  add(RLIMIT_FSIZE, options.limit_file_bytes, 0);
  add(RLIMIT_CORE, options.limit_core_bytes, 0);
  add(RLIMIT_AS, options.limit_address_space_bytes, 0);  // last: nothing after it may need memory
  return limits;
}

int highest_number(const SubprocessOptions& options) {
  int highest = 2;
  for (const auto& passed : options.fds) {
    if (passed.fd < 0 || passed.number < 3) {
      throw Error(ErrorCode::InvalidArgument, options.program,
                  "a descriptor is passed as number " + std::to_string(passed.number) + ", it must be 3 or above");
    }
    for (const auto& other : options.fds) {
      if (&other != &passed && other.number == passed.number) {
        throw Error(ErrorCode::InvalidArgument, options.program,
                    "two descriptors are passed as number " + std::to_string(passed.number));
      }
    }
    highest = std::max(highest, passed.number);
  }
  return highest;
}

// What the child said before it gave up; nullopt when exec closed the pipe.
std::optional<ChildFault> read_fault(int fd) {
  ChildFault fault{};
  ssize_t got = 0;
  do {
    got = ::read(fd, &fault, sizeof(fault));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(fault)) ? std::optional(fault) : std::nullopt;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void throw_fault(const std::string& program, const ChildFault& fault) {
  if (fault.step == kExec) {
    throw system_error(program, "cannot execute", fault.error_number);
  }
  const Error cause = system_error(program, std::string("cannot start: ") + kSteps[fault.step], fault.error_number);
  throw Error(ErrorCode::Unavailable, cause.where(), cause.cause());
}

}  // namespace

std::string ExitStatus::describe() const {
  if (signal) {
    return "signal " + std::to_string(*signal) + " (" + ::strsignal(*signal) + ")";
  }
  return "exit code " + std::to_string(code.value_or(-1));
}

struct Subprocess::State {
  const pid_t pid;
  UniqueFd pid_fd;
  UniqueFd stdout_pipe;
  UniqueFd stderr_pipe;
  // The number belongs to the child until it is reaped; after that it may be another process's. kill_group() may be
  // called by any thread, so reaping and killing exclude each other.
  std::mutex mutex;
  std::optional<ExitStatus> status;  // guarded by mutex; set when the child has been reaped

  explicit State(pid_t child) : pid(child), pid_fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))) {}

  // With the lock held.
  bool has_ended() const {
    siginfo_t info{};
    int result = 0;
    do {
      result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (result < 0 && errno == EINTR);
    return result < 0 || info.si_pid == pid;
  }

  // With the lock held and the child ended: nothing of its group outlives it.
  void reap_group() {
    ::kill(-pid, SIGKILL);
    int raw = 0;
    rusage usage{};
    pid_t reaped = 0;
    do {
      reaped = ::wait4(pid, &raw, 0, &usage);
    } while (reaped < 0 && errno == EINTR);
    ExitStatus result;
    if (reaped == pid && WIFSIGNALED(raw)) {
      result.signal = WTERMSIG(raw);
    } else if (reaped == pid) {
      result.code = WEXITSTATUS(raw);
    } else {
      result.code = 127;  // somebody else has reaped it (SIGCHLD ignored, or a stray waitpid(-1))
    }
    const auto micros = [](const timeval& time) {
      return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    result.cpu_time = micros(usage.ru_utime) + micros(usage.ru_stime);
    result.max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    status = result;
  }

  std::optional<ExitStatus> poll_end() {
    const std::lock_guard lock(mutex);
    if (!status && has_ended()) {
      reap_group();
    }
    return status;
  }

  void kill_group() noexcept {
    const std::lock_guard lock(mutex);
    if (!status) {
      ::kill(-pid, SIGKILL);
    }
  }

  // Blocks until the child may have ended or `timeout` has passed; the lock is not held.
  void wait_a_while(milliseconds timeout) const {
    if (pid_fd) {
      pollfd entry{pid_fd.get(), POLLIN, 0};
      ::poll(&entry, 1, static_cast<int>(timeout.count()));
    } else {  // a kernel without pidfd_open
      std::this_thread::sleep_for(std::min(timeout, milliseconds(5)));
    }
  }
};

Subprocess Subprocess::spawn(const SubprocessOptions& options) {
  const int lowest = highest_number(options) + 1;
  auto [fault_read, fault_write] = make_pipe();
  UniqueFd report = copy_above(fault_write.get(), lowest);
  fault_write.reset();
  const UniqueFd null = open_null();
  const UniqueFd null_copy = copy_above(null.get(), lowest);

  std::vector<UniqueFd> copies;
  std::vector<SubprocessOptions::PassedFd> placed;
  for (const auto& passed : options.fds) {
    copies.push_back(copy_above(passed.fd, lowest));
    placed.push_back({copies.back().get(), passed.number});
  }
  UniqueFd pipes[2];
  int targets[2] = {-1, -1};
  const ChildStream wanted[2] = {options.stdout_to, options.stderr_to};
  for (int i = 0; i < 2; ++i) {
    if (wanted[i] == ChildStream::Null) {
      targets[i] = null_copy.get();
    } else if (wanted[i] == ChildStream::Pipe) {
      auto [read_end, write_end] = make_pipe();
      pipes[i] = std::move(read_end);
      copies.push_back(copy_above(write_end.get(), lowest));
      targets[i] = copies.back().get();
    }
  }

  std::vector<std::string> arguments{options.program};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = options.environment;
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const std::vector<Limit> limits = limits_of(options);
  const ChildPlan plan{.program = options.program.c_str(),
                       .argv = argv.data(),
                       .envp = envp.data(),
                       .working_folder = options.working_folder.empty() ? nullptr : options.working_folder.c_str(),
                       .null_fd = null_copy.get(),
                       .stdout_fd = targets[0],
                       .stderr_fd = targets[1],
                       .fds = placed.data(),
                       .fd_count = placed.size(),
                       .limits = limits.data(),
                       .limit_count = limits.size(),
                       .nice = options.nice,
                       .report_fd = report.get(),
                       .parent = ::getpid()};
  const pid_t pid = vfork_and_run(plan);
  if (pid < 0) {
    throw system_error(options.program, "cannot create a process", errno);
  }
  report.reset();  // or its end of file would never come
  if (const auto fault = read_fault(fault_read.get())) {
    reap(pid);
    throw_fault(options.program, *fault);
  }
  auto state = std::make_unique<State>(pid);
  state->stdout_pipe = std::move(pipes[0]);
  state->stderr_pipe = std::move(pipes[1]);
  return Subprocess(std::move(state));
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subprocess::Subprocess(Subprocess&&) noexcept = default;

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    Subprocess old(std::move(*this));  // its destructor ends the child that was here
    state_ = std::move(other.state_);
  }
  return *this;
}

Subprocess::~Subprocess() {
  if (state_) {
    state_->kill_group();
    wait();
  }
}

pid_t Subprocess::pid() const noexcept { return state_->pid; }
UniqueFd& Subprocess::stdout_pipe() noexcept { return state_->stdout_pipe; }
UniqueFd& Subprocess::stderr_pipe() noexcept { return state_->stderr_pipe; }
void Subprocess::kill_group() noexcept { state_->kill_group(); }

void Subprocess::send_signal(int signal) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (!state_->status) {
    ::kill(state_->pid, signal);
  }
}

ExitStatus Subprocess::wait() {
  for (;;) {
    if (const auto status = state_->poll_end()) {
      return *status;
    }
    state_->wait_a_while(milliseconds(1000));
  }
}

std::optional<ExitStatus> Subprocess::try_wait() { return state_->poll_end(); }

std::optional<ExitStatus> Subprocess::wait_until(steady_clock::time_point deadline) {
  for (;;) {
    if (const auto status = state_->poll_end()) {
      return status;
    }
    const auto now = steady_clock::now();
    if (now >= deadline) {
      return std::nullopt;
    }
    const auto left = std::chrono::ceil<milliseconds>(std::min<steady_clock::duration>(deadline - now, milliseconds(1000)));
    state_->wait_a_while(left);
  }
}

}  // namespace cubind
