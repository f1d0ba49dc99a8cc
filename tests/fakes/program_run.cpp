#include "tests/fakes/program_run.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>

#include "base/subprocess.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

// False at the end of the stream.
bool read_some(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count <= 0) {
    return false;
  }
  text.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

// Both streams to their ends, or to the deadline.
void collect(Subprocess& child, const ProgramRun& run, ProgramResult& result) {
  const auto deadline = std::chrono::steady_clock::now() + run.limit;
  std::array<pollfd, 2> fds = {pollfd{child.stdout_pipe().get(), POLLIN, 0},
                               pollfd{child.stderr_pipe().get(), POLLIN, 0}};
  bool called = run.until.empty();
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    poll(fds.data(), fds.size(), 100);
    if (fds[0].revents != 0 && !read_some(fds[0].fd, result.out)) {
      fds[0].fd = -1;
    }
    if (fds[1].revents != 0 && !read_some(fds[1].fd, result.err)) {
      fds[1].fd = -1;
    }
    if (!called && result.out.find(run.until) != std::string::npos) {
      called = true;
      run.then(child.pid());
    }
    if (std::chrono::steady_clock::now() > deadline) {
      child.kill_group();
      return;
    }
  }
}

}  // namespace

ProgramResult run_program(const ProgramRun& run) {
  SubprocessOptions options;
  options.program =
      run.program.find('/') == std::string::npos ? (bin_dir() / run.program).string() : run.program;
  options.arguments = run.arguments;
  options.environment = run.environment;
  options.stdout_to = ChildStream::Pipe;
  options.stderr_to = ChildStream::Pipe;
  Subprocess child = Subprocess::spawn(options);
  ProgramResult result;
  collect(child, run, result);
  const ExitStatus status = child.wait();
  result.exit_code = status.code ? *status.code : 128 + status.signal.value_or(0);
  return result;
}

}  // namespace cubind::test
