#include "base/subprocess.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/child_launch.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

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
  // The number belongs to the child until it is reaped; after that it may be another process's. kill_group()
  // may be called by any thread, so reaping and killing exclude each other.
  std::mutex mutex;
  std::optional<ExitStatus> status;  // guarded by mutex; set when the child has been reaped

  explicit State(pid_t child) : pid(child), pid_fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))) {}

  // Requires the lock.
  bool has_ended() const {
    siginfo_t info{};
    int result = 0;
    do {
      result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (result < 0 && errno == EINTR);
    return result < 0 || info.si_pid == pid;
  }

  // Call it with the lock held and the child ended: nothing of its group outlives it.
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
      result.code = 127;  // already reaped (SIGCHLD ignored, or a stray waitpid(-1))
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
  LaunchedChild child = launch_child(options);
  auto state = std::make_unique<State>(child.pid);
  state->stdout_pipe = std::move(child.stdout_pipe);
  state->stderr_pipe = std::move(child.stderr_pipe);
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
    const auto left =
        std::chrono::ceil<milliseconds>(std::min<steady_clock::duration>(deadline - now, milliseconds(1000)));
    state_->wait_a_while(left);
  }
}

}  // namespace cubind
