#include "tests/unit/sandbox/confined_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <exception>

namespace cubind::test {
namespace {

[[noreturn]] void be_child(int report, const std::function<void()>& confine,
                           const std::function<int()>& attempt) {
  std::string outcome;
  std::signal(SIGABRT, SIG_DFL);  // Catch has a handler, which would report a failed test
  try {
    confine();
    const int error_number = attempt();
    outcome = error_number == 0 ? "allowed" : ::strerrorname_np(error_number);
  } catch (const std::exception& error) {
    outcome = std::string("cannot be confined: ") + error.what();
  }
  [[maybe_unused]] const ssize_t written = ::write(report, outcome.data(), outcome.size());
  ::_exit(0);
}

}  // namespace

std::string outcome_in_process(const std::function<void()>& confine, const std::function<int()>& attempt) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    be_child(ends[1], confine, attempt);
  }
  ::close(ends[1]);
  std::array<char, 256> text{};
  const ssize_t count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) {
    return "killed by signal " + std::to_string(WTERMSIG(status));
  }
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

}  // namespace cubind::test
