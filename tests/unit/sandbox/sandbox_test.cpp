#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "tests/unit/sandbox/confined_process.hpp"
#include "tuner/sandbox/landlock.hpp"
#include "tuner/sandbox/syscall_filter.hpp"

namespace cubind::test {
namespace {

constexpr int kSocket = 0;  // of these tests: nothing speaks on it

int error_of(long result) { return result < 0 ? errno : 0; }

int in_forked(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) {
    return errno;
  }
  if (child == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

struct Attempt {
  const char* name;
  std::function<int()> run;
};

std::vector<Attempt> ways_out() {
  return {
      {"a socket", [] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); }},
      {"a Unix socket", [] { return error_of(::socket(AF_UNIX, SOCK_STREAM, 0)); }},
      {"a raw socket", [] { return error_of(::socket(AF_PACKET, SOCK_RAW, 0)); }},
      {"a pair of sockets",
       [] {
         int ends[2];
         return error_of(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
       }},
      {"a signal to the parent", [] { return error_of(::kill(::getppid(), 0)); }},
      {"a signal to every process", [] { return error_of(::kill(-1, 0)); }},
      {"a handle of the parent", [] { return error_of(::syscall(SYS_pidfd_open, ::getppid(), 0)); }},
      {"tracing", [] { return error_of(::syscall(SYS_ptrace, 0, 0, 0, 0)); }},
      {"another's memory",
       [] { return error_of(::syscall(SYS_process_vm_readv, ::getppid(), 0, 0, 0, 0, 0)); }},
      {"another's limits",
       [] {
         rlimit limit{};
         return error_of(::syscall(SYS_prlimit64, ::getppid(), RLIMIT_CPU, nullptr, &limit));
       }},
      {"another's priority", [] { return error_of(::setpriority(PRIO_PROCESS, ::getppid(), 19)); }},
      {"a user namespace", [] { return error_of(::unshare(CLONE_NEWUSER)); }},
      {"a namespace by clone",
       [] {
         const long child = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
         if (child == 0) {
           ::_exit(0);
         }
         return error_of(child);
       }},
      {"a namespace by clone3",
       [] {
         std::uint64_t arguments[11] = {CLONE_NEWUSER};
         const long child = ::syscall(SYS_clone3, arguments, sizeof(arguments));
         if (child == 0) {
           ::_exit(0);
         }
         return error_of(child);
       }},
      {"a mount", [] { return error_of(::syscall(SYS_mount, "a", "/", "tmpfs", 0, 0)); }},
      {"another root", [] { return error_of(::chroot("/tmp")); }},
      {"io_uring", [] { return error_of(::syscall(SYS_io_uring_setup, 1, nullptr)); }},
      {"bpf", [] { return error_of(::syscall(SYS_bpf, 0, nullptr, 0)); }},
      {"performance counters", [] { return error_of(::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0)); }},
      {"faults of memory", [] { return error_of(::syscall(SYS_userfaultfd, 0)); }},
      {"keys of the kernel", [] { return error_of(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)); }},
      {"memory that outlives it", [] { return error_of(::shmget(IPC_PRIVATE, 4096, 0600)); }},
      {"a queue that outlives it",
       [] { return error_of(::syscall(SYS_mq_open, "/a", O_CREAT, 0600, nullptr)); }},
      {"another owner", [] { return error_of(::chown("/tmp", 0, 0)); }},
      {"another mode", [] { return error_of(::chmod("/tmp", 01777)); }},
      {"a shorter file", [] { return error_of(::truncate("/dev/null", 0)); }},
      {"another user", [] { return error_of(::setuid(0)); }},
      {"another personality", [] { return error_of(::syscall(SYS_personality, 0)); }},
  };
}

bool is_refusal(const std::string& outcome) {
  return outcome == "ENOSYS" || outcome == "EPERM" || outcome == "ENOENT" || outcome == "EMFILE" ||
         outcome == "EACCES";
}

void load(const std::string& program) {
  std::vector<sock_filter> steps(program.size() / sizeof(sock_filter));
  std::memcpy(steps.data(), program.data(), program.size());
  const sock_fprog filter{static_cast<unsigned short>(steps.size()), steps.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    throw system_error("the filter", "prctl", errno);
  }
}

void compute_alone() { allow_computing_alone(kSocket); }
void compile() { load(compiler_filter(true)); }

}  // namespace

TEST_CASE("no way out of a process is open to one that computes alone, nor to a compiler with files") {
  for (const Attempt& attempt : ways_out()) {
    INFO(attempt.name);
    CHECK(is_refusal(outcome_in_process(compute_alone, attempt.run)));
    CHECK(is_refusal(outcome_in_process(compile, attempt.run)));
  }
}

TEST_CASE("a process that computes alone has files in memory, and a compiler with files has none") {
  const auto make = [] { return error_of(::dup(::memfd_create("a", 0))); };
  CHECK(outcome_in_process(compute_alone, make) == "allowed");
  CHECK(is_refusal(outcome_in_process(compile, [] { return error_of(::memfd_create("a", 0)); })));
  CHECK(
      is_refusal(outcome_in_process(compute_alone, [] { return error_of(::fcntl(0, F_SETFL, O_APPEND)); })));
}

TEST_CASE("a process that computes alone starts no other and no program") {
  const auto start = [] { return in_forked([] { return 0; }); };
  const auto run = [] {
    char* const arguments[] = {const_cast<char*>("true"), nullptr};
    return error_of(::execve("/bin/true", arguments, nullptr));
  };
  CHECK(outcome_in_process(compute_alone, start) == "ENOSYS");
  CHECK(outcome_in_process(compute_alone, run) == "ENOSYS");
  CHECK(outcome_in_process(compile, start) == "allowed");
}

TEST_CASE("no name tells a process that computes alone whether a file exists") {
  struct stat info {};
  for (const char* path : {"/etc/passwd", "/etc/passwd-not", "/root", "/"}) {
    INFO(path);
    CHECK(outcome_in_process(compute_alone, [&] { return error_of(::stat(path, &info)); }) == "ENOENT");
    CHECK(outcome_in_process(compute_alone, [&] { return error_of(::access(path, F_OK)); }) == "ENOENT");
    CHECK(outcome_in_process(compute_alone, [&] { return error_of(::open(path, O_RDONLY)); }) == "EMFILE");
    CHECK(outcome_in_process(compute_alone, [&] { return error_of(::mkdir(path, 0700)); }) == "ENOSYS");
    CHECK(outcome_in_process(compute_alone, [&] { return error_of(::unlink(path)); }) == "ENOSYS");
  }
}

TEST_CASE("a process that computes alone allocates, starts threads, and can abort") {
  const auto works = [] {
    std::thread([] { std::vector<char>(std::size_t{64} << 20)[1] = 1; }).join();
    rlimit limit{};
    return error_of(::getrlimit(RLIMIT_CPU, &limit));
  };
  CHECK(outcome_in_process(compute_alone, works) == "allowed");
  CHECK(outcome_in_process(compute_alone, []() -> int { std::abort(); }) == "killed by signal 6");
}

TEST_CASE("what a compiler starts is confined too, and may abort only where Landlock keeps its signals") {
  const auto socket_of_child = [] {
    return in_forked([] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); });
  };
  CHECK(outcome_in_process(compile, socket_of_child) == "EPERM");
  const auto signal_self = [] { return error_of(::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0)); };
  CHECK(outcome_in_process(compile, signal_self) == "allowed");
  CHECK(outcome_in_process([] { load(compiler_filter(false)); }, signal_self) == "EPERM");
}

TEST_CASE("Landlock denies every file and, from version 6 on, signals to other processes") {
  if (landlock_version() == 0) {
    WARN("the kernel has no Landlock");
    CHECK_THROWS_AS(deny_all_files(), Error);
    return;
  }
  const auto open_of = [](const char* path, int flags) {
    return [=] { return error_of(::open(path, flags, 0600)); };
  };
  CHECK(outcome_in_process(deny_all_files, open_of("/etc/passwd", O_RDONLY)) == "EACCES");
  CHECK(outcome_in_process(deny_all_files, open_of("/tmp", O_RDONLY)) == "EACCES");
  CHECK(outcome_in_process(deny_all_files, open_of("/tmp", O_TMPFILE | O_RDWR)) == "EACCES");
  CHECK(outcome_in_process(deny_all_files, [] { return error_of(::mkdir("/tmp/a-folder", 0700)); }) ==
        "EACCES");
  const auto run = [] {
    char* const arguments[] = {const_cast<char*>("true"), nullptr};
    return error_of(::execve("/bin/true", arguments, nullptr));
  };
  CHECK(outcome_in_process(deny_all_files, run) == "EACCES");
  if (landlock_version() >= 6) {
    CHECK(outcome_in_process(deny_all_files, [] { return error_of(::kill(::getppid(), 0)); }) == "EPERM");
  }
}

TEST_CASE("a kernel that refuses the sandbox is an error that names the part") {
  const auto refuse = [](const char* call) {
    return [call] {
      const scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
      seccomp_rule_add(context, SCMP_ACT_ERRNO(EOPNOTSUPP), seccomp_syscall_resolve_name(call), 0);
      seccomp_load(context);
      seccomp_release(context);
    };
  };
  CHECK_THAT(outcome_in_process(
                 [&] {
                   refuse("landlock_create_ruleset")();
                   deny_all_files();
                 },
                 [] { return 0; }),
             Catch::Matchers::StartsWith("cannot be confined: Landlock: "));
  CHECK_THAT(outcome_in_process(
                 [&] {
                   refuse("seccomp")();
                   compute_alone();
                 },
                 [] { return 0; }),
             Catch::Matchers::StartsWith("cannot be confined: seccomp: "));
}

}  // namespace cubind::test
