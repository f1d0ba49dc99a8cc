// The child of subprocess_test.cpp: does what its first argument says and reports on descriptor 5 or stdout.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern char** environ;

namespace {

void say(int fd, const std::string& text) {
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::exit(90);
  }
}

std::string limit_text(int resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return std::to_string(limit.rlim_cur);
}

// Open descriptors, ascending, without the one that lists them.
std::string open_descriptors() {
  std::string text;
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) {
      text += std::to_string(fd) + " ";
    }
  }
  return text;
}

std::string state() {
  std::string text = "fds " + open_descriptors() + "\n";
  text += "group " + std::string(::getpgrp() == ::getpid() ? "own" : "shared") + "\n";
  int signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &signal);
  text += "deathsig " + std::to_string(signal) + "\n";
  text += "as " + limit_text(RLIMIT_AS) + " cpu " + limit_text(RLIMIT_CPU) + " fsize " +
          limit_text(RLIMIT_FSIZE) + " core " + limit_text(RLIMIT_CORE) + "\n";
  text += "nice " + std::to_string(::getpriority(PRIO_PROCESS, 0)) + "\n";
  text += "class " + std::to_string(::sched_getscheduler(0)) + "\n";
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction action {};
  ::sigaction(SIGUSR1, nullptr, &action);
  text += "usr1 " + std::string(::sigismember(&mask, SIGUSR1) != 0 ? "blocked" : "open") +
          (action.sa_handler == SIG_DFL ? " default" : " changed") + "\n";
  char c = 0;
  text += "stdin " + std::to_string(::read(0, &c, 1)) + "\n";
  char folder[4096];
  text += "cwd " + std::string(::getcwd(folder, sizeof(folder))) + "\n";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    text += "env " + std::string(*variable) + "\n";
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "exit") {
    return std::atoi(argv[2]);
  }
  if (action == "state") {
    say(5, state());
    return 0;
  }
  if (action == "say") {
    say(1, argv[2]);
    say(2, argv[3]);
    return 0;
  }
  if (action == "echo") {  // sends back what arrives on the descriptor
    const int fd = std::atoi(argv[2]);
    char buffer[256];
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    say(fd, "echo " + std::string(buffer, static_cast<std::size_t>(got)));
    return 0;
  }
  if (action == "hang") {  // with a grandchild that keeps descriptor 5 open
    if (::fork() == 0) {
      ::pause();
      return 0;
    }
    say(5, "ready");
    ::pause();
  }
  if (action == "orphan") {  // leaves a grandchild behind
    if (::fork() == 0) {
      ::pause();
      return 0;
    }
    return 0;
  }
  if (action == "allocate") {
    void* memory = std::malloc(std::size_t{1} << 30);
    const bool got = memory != nullptr;
    if (got) {
      std::memset(memory, 1, 64);
    }
    std::free(memory);
    return got ? 0 : 3;
  }
  if (action == "spin") {
    for (;;) {
      asm volatile("");  // a loop without effects may be taken for one that ends
    }
  }
  return 91;
}
