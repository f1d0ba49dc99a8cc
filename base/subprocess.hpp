#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace cubind {

/// Where a child's output goes.
enum class ChildStream {
  Null,     // /dev/null
  Inherit,  // the parent's
  Pipe,     // the read end is Subprocess::stdout_pipe() or stderr_pipe()
};

/// What a child runs, and in which surroundings.
struct SubprocessOptions {
  std::string program;                   // path of the executable; PATH is not searched
  std::vector<std::string> arguments;    // without argv[0], which is `program`
  std::vector<std::string> environment;  // "NAME=value"; empty: an empty environment, nothing is inherited

  /// Descriptors of this process, each with the number it gets in the child. All others but 0, 1 and 2 are
  /// closed there. The parent's copies stay open: close the child's end after the spawn, or its end of stream
  /// never comes.
  struct PassedFd {
    int fd = -1;
    int number = -1;  // 3 or above, no two alike
  };
  std::vector<PassedFd> fds;

  ChildStream stdout_to = ChildStream::Null;  // stdin always reads /dev/null
  ChildStream stderr_to = ChildStream::Inherit;

  std::optional<std::uint64_t> limit_address_space_bytes;  // RLIMIT_AS
  std::optional<std::uint64_t> limit_cpu_seconds;          // RLIMIT_CPU: SIGXCPU, SIGKILL two seconds later
  std::optional<std::uint64_t> limit_file_bytes;           // RLIMIT_FSIZE
  std::optional<std::uint64_t> limit_core_bytes = 0;       // RLIMIT_CORE
  int nice = 0;                                            // added to the parent's
  /// SCHED_IDLE, in which the child gets what the other processes leave; where that is refused, nice 19. An
  /// ordinary user cannot take a process out of it again.
  bool idle_class = false;

  std::string working_folder;  // empty: the parent's
};

/// How a child ended, and what it used.
struct ExitStatus {
  std::optional<int> code;    // of exit(); exactly one of code and signal is set
  std::optional<int> signal;  // that ended it
  std::chrono::microseconds cpu_time{0};
  std::uint64_t max_rss_bytes = 0;

  bool success() const { return code == 0; }
  /// "exit code 3", "signal 9 (Killed)".
  std::string describe() const;
};

/// A child process in a process group of its own, which dies with this object and with this process.
///
/// The child is made by vfork and exec, so that no lock of this process (malloc, gRPC, NVRTC) is ever copied
/// into it, and between the two it makes only system calls. It has default signal actions and an empty signal
/// mask.
///
/// Thread rule: the child gets PR_SET_PDEATHSIG(SIGKILL), and the kernel counts the THREAD that made it as
/// its parent. When that thread ends the child is killed, though this process lives on. So spawn() from a
/// thread that lives as long as the child is wanted, or, where threads come and go, through a Spawner, whose
/// only purpose is to be that thread.
///
/// One object is used by one thread at a time, but kill_group() may be called from any thread while another
/// waits.
class Subprocess {
 public:
  /// Throws InvalidArgument for options that make no sense, NotFound or PermissionDenied if the program
  /// cannot be executed, else Unavailable; the cause names the step that failed in the child.
  static Subprocess spawn(const SubprocessOptions& options);

  /// Kills the group and reaps the child.
  ~Subprocess();
  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;

  pid_t pid() const noexcept;  // also the process group's id

  /// The read ends of the pipes that the options asked for; else empty.
  UniqueFd& stdout_pipe() noexcept;
  UniqueFd& stderr_pipe() noexcept;

  /// Sends SIGKILL to the whole group. Nothing happens once the child has been reaped.
  void kill_group() noexcept;
  /// Sends a signal to the child alone.
  void send_signal(int signal) noexcept;

  /// Waits for the child's end and reaps it; the rest of its group is killed first, so that no grandchild
  /// stays. The same status again on every later call.
  ExitStatus wait();
  std::optional<ExitStatus> try_wait();
  std::optional<ExitStatus> wait_until(std::chrono::steady_clock::time_point deadline);

 private:
  struct State;
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A thread that lives as long as this object and makes children for others; see the thread rule above. Its
/// destructor ends the thread, which kills the children that are left. spawn() may be called from any thread
/// and throws what Subprocess::spawn throws.
class Spawner {
 public:
  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  Subprocess spawn(const SubprocessOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cubind
