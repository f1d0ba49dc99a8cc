#include "base/child_launch.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/child_start.hpp"
#include "base/error.hpp"

namespace cubind {
namespace {

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

// A stricter limit of our own stays: raising it needs privileges.
rlimit limit_at_most(int resource, rlim_t soft, rlim_t hard) {
  rlimit ours{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &ours) != 0) {
    throw system_error("a limit of the process", "getrlimit", errno);
  }
  return {std::min(soft, ours.rlim_max), std::min(hard, ours.rlim_max)};
}

std::vector<ResourceLimit> limits_of(const SubprocessOptions& options) {
  std::vector<ResourceLimit> limits;
  const auto add = [&limits](int resource, const std::optional<std::uint64_t>& value, std::uint64_t grace) {
    if (value) {
      limits.push_back({resource, limit_at_most(resource, *value, *value + grace)});
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
      throw Error(
          ErrorCode::InvalidArgument, options.program,
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

// The child's report before it gave up; nullopt when exec closed the pipe.
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
  if (failed_at_exec(fault)) {
    throw system_error(program, "cannot execute", fault.error_number);
  }
  const Error cause =
      system_error(program, std::string("cannot start: ") + step_name(fault), fault.error_number);
  throw Error(ErrorCode::Unavailable, cause.where(), cause.cause());
}

// The descriptors that a child gets, as copies above all numbers that it will overwrite. Closed here when the
// child has been made.
struct ChildDescriptors {
  explicit ChildDescriptors(int lowest_number)
      : lowest(lowest_number), null(copy_above(open_null().get(), lowest)) {}

  void pass(const SubprocessOptions::PassedFd& passed) {
    copies.push_back(copy_above(passed.fd, lowest));
    placed.push_back({copies.back().get(), passed.number});
  }

  // The descriptor that becomes the child's stream, -1 for the parent's; the read end of a pipe goes to
  // `read_end`.
  int open_stream(ChildStream stream, UniqueFd& read_end) {
    if (stream != ChildStream::Pipe) {
      return stream == ChildStream::Null ? null.get() : -1;
    }
    auto [read, write] = make_pipe();
    read_end = std::move(read);
    copies.push_back(copy_above(write.get(), lowest));
    return copies.back().get();
  }

  int lowest;
  UniqueFd null;
  std::vector<UniqueFd> copies;
  std::vector<SubprocessOptions::PassedFd> placed;
};

}  // namespace

LaunchedChild launch_child(const SubprocessOptions& options) {
  ChildDescriptors descriptors(highest_number(options) + 1);
  for (const auto& passed : options.fds) {
    descriptors.pass(passed);
  }
  LaunchedChild child;
  const int stdout_fd = descriptors.open_stream(options.stdout_to, child.stdout_pipe);
  const int stderr_fd = descriptors.open_stream(options.stderr_to, child.stderr_pipe);
  auto [fault_read, fault_write] = make_pipe();
  UniqueFd report = copy_above(fault_write.get(), descriptors.lowest);
  fault_write.reset();

  std::vector<std::string> arguments{options.program};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = options.environment;
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const std::vector<ResourceLimit> limits = limits_of(options);
  child.pid = start_child(
      {.program = options.program.c_str(),
       .argv = argv.data(),
       .envp = envp.data(),
       .working_folder = options.working_folder.empty() ? nullptr : options.working_folder.c_str(),
       .null_fd = descriptors.null.get(),
       .stdout_fd = stdout_fd,
       .stderr_fd = stderr_fd,
       .fds = descriptors.placed.data(),
       .fd_count = descriptors.placed.size(),
       .limits = limits.data(),
       .limit_count = limits.size(),
       .nice = options.nice,
       .idle_class = options.idle_class,
       .report_fd = report.get(),
       .parent = ::getpid()});
  if (child.pid < 0) {
    throw system_error(options.program, "cannot create a process", errno);
  }
  report.reset();  // or its end of file would never come
  if (const auto fault = read_fault(fault_read.get())) {
    reap(child.pid);
    throw_fault(options.program, *fault);
  }
  return child;
}

}  // namespace cubind
