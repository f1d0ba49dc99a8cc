#include "base/subprocess.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/framing.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::error_of;

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

SubprocessOptions child(std::vector<std::string> arguments) {
  SubprocessOptions options;
  options.program = (executable_dir() / "subprocess_child").string();
  options.arguments = std::move(arguments);
  return options;
}

// All that arrives until the last holder of the other end is gone.
std::string read_all(const UniqueFd& fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return text;
    }
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string state_of(SubprocessOptions options) {
  auto [mine, its] = make_socket_pair();
  options.fds = {{its.get(), 5}};
  Subprocess process = Subprocess::spawn(options);
  its.reset();
  std::string text = read_all(mine);
  CHECK(process.wait().success());
  return text;
}

bool contains(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

// A child that hangs, with a grandchild; the descriptor's end of stream shows when both are gone.
struct Hanging {
  UniqueFd stream;
  std::optional<Subprocess> process;

  explicit Hanging(const std::function<Subprocess(const SubprocessOptions&)>& spawn = &Subprocess::spawn) {
    auto [mine, its] = make_socket_pair();
    SubprocessOptions options = child({"hang"});
    options.fds = {{its.get(), 5}};
    process.emplace(spawn(options));
    stream = std::move(mine);
    its.reset();
    char ready[5];
    REQUIRE(::read(stream.get(), ready, 5) == 5);
  }
};

}  // namespace

TEST_CASE("the exit code of a child can be read again and again") {
  Subprocess process = Subprocess::spawn(child({"exit", "7"}));
  const ExitStatus status = process.wait();
  CHECK(status.code == 7);
  CHECK_FALSE(status.signal);
  CHECK_FALSE(status.success());
  CHECK(status.describe() == "exit code 7");
  CHECK(process.wait().code == 7);
  CHECK(process.try_wait()->code == 7);
}

TEST_CASE("the signal that ended a child is reported") {
  Hanging hanging;
  hanging.process->kill_group();
  const ExitStatus status = hanging.process->wait();
  CHECK(status.signal == SIGKILL);
  CHECK_FALSE(status.code);
  CHECK(status.describe() == "signal 9 (Killed)");
}

TEST_CASE("a child gets the passed descriptors and no other") {
  const UniqueFd stray(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const UniqueFd high(::fcntl(stray.get(), F_DUPFD, 200));
  const std::string state = state_of(child({"state"}));
  INFO(state);
  CHECK(contains(state, "fds 0 1 2 5 "));
}

TEST_CASE("descriptors may change places") {
  auto [mine, its] = make_socket_pair();
  const UniqueFd first(::fcntl(its.get(), F_DUPFD_CLOEXEC, 300));
  const UniqueFd second(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 400));
  SubprocessOptions options = child({"echo", std::to_string(second.get())});
  options.fds = {{first.get(), second.get()}, {second.get(), first.get()}};
  Subprocess process = Subprocess::spawn(options);
  CHECK(::write(mine.get(), "hello", 5) == 5);
  char answer[10] = {};
  CHECK(::recv(mine.get(), answer, 10, MSG_WAITALL) == 10);
  CHECK(std::string(answer, 10) == "echo hello");
  CHECK(process.wait().success());
}

TEST_CASE("a child starts in a clean state") {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto old_action = ::signal(SIGUSR1, SIG_IGN);
  const std::string state = state_of(child({"state"}));
  ::signal(SIGUSR1, old_action);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  INFO(state);
  CHECK(contains(state, "group own"));
  CHECK(contains(state, "deathsig 9"));
  CHECK(contains(state, "usr1 open default"));
  CHECK(contains(state, "stdin 0"));
  CHECK(state.find("env ") == std::string::npos);
}

TEST_CASE("environment folder and niceness are the ones asked for") {
  SubprocessOptions options = child({"state"});
  options.environment = {"A=1", "B=two words"};
  options.working_folder = "/";
  options.nice = 3;
  const int mine = ::getpriority(PRIO_PROCESS, 0);
  const std::string state = state_of(options);
  INFO(state);
  CHECK(contains(state, "env A=1\nenv B=two words"));
  CHECK(contains(state, "cwd /"));
  CHECK(contains(state, "nice " + std::to_string(std::min(mine + 3, 19))));
}

TEST_CASE("a child is in the idle class where that is asked for and else in that of its parent") {
  const auto class_text = [](int scheduler) { return "class " + std::to_string(scheduler); };
  SubprocessOptions options = child({"state"});
  CHECK(contains(state_of(options), class_text(::sched_getscheduler(0))));
  options.idle_class = true;
  CHECK(contains(state_of(options), class_text(SCHED_IDLE)));
}

TEST_CASE("limits hold in the child and not here") {
  SubprocessOptions options = child({"state"});
  options.limit_cpu_seconds = 11;
  options.limit_file_bytes = 4096;
  options.limit_core_bytes = 0;
  const std::string state = state_of(options);
  INFO(state);
  CHECK(state.find(" cpu 11 fsize 4096 core 0\n") != std::string::npos);
  rlimit mine{};
  ::getrlimit(RLIMIT_CPU, &mine);
  CHECK(mine.rlim_cur != 11);
}

TEST_CASE("a limit above the strictest one of this process is that one") {
  rlimit mine{};
  ::getrlimit(RLIMIT_FSIZE, &mine);
  mine.rlim_max = std::min<rlim_t>(mine.rlim_max, rlim_t{1} << 30);
  mine.rlim_cur = mine.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &mine) == 0);
  SubprocessOptions options = child({"state"});
  options.limit_file_bytes = mine.rlim_max + 1;
  const std::string state = state_of(options);
  INFO(state);
  CHECK(state.find(" fsize " + std::to_string(mine.rlim_max) + " core") != std::string::npos);
}

TEST_CASE("a child that uses up its CPU time is ended by the kernel") {
  SubprocessOptions options = child({"spin"});
  options.limit_cpu_seconds = 1;
  const ExitStatus status = Subprocess::spawn(options).wait();
  CHECK((status.signal == SIGXCPU || status.signal == SIGKILL));
  CHECK(status.cpu_time >= milliseconds(500));  // the kernel counts the limit by another clock
  CHECK(status.max_rss_bytes > 100000);
}

TEST_CASE("standard streams go where the options say") {
  SubprocessOptions options = child({"say", "to stdout", "to stderr"});
  options.stdout_to = ChildStream::Pipe;
  options.stderr_to = ChildStream::Pipe;
  Subprocess process = Subprocess::spawn(options);
  CHECK(read_all(process.stdout_pipe()) == "to stdout");
  CHECK(read_all(process.stderr_pipe()) == "to stderr");
  options.stdout_to = ChildStream::Null;
  options.stderr_to = ChildStream::Null;
  Subprocess silent = Subprocess::spawn(options);
  CHECK_FALSE(silent.stdout_pipe());
  CHECK(silent.wait().success());
}

TEST_CASE("a missing program or one that is not executable is reported with its path") {
  SubprocessOptions options;
  options.program = "/nonexistent/worker";
  const auto missing = error_of([&] { Subprocess::spawn(options); });
  REQUIRE(missing);
  CHECK(missing->code() == ErrorCode::NotFound);
  CHECK(std::string(missing->what()) == "/nonexistent/worker: cannot execute: No such file or directory");
  options.program = "/etc/passwd";
  CHECK(error_of([&] { Subprocess::spawn(options); })->code() == ErrorCode::PermissionDenied);
}

TEST_CASE("a step that fails in the child is named") {
  SubprocessOptions options = child({"exit", "0"});
  options.working_folder = "/nonexistent";
  const auto error = error_of([&] { Subprocess::spawn(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::Unavailable);
  CHECK(error->cause() == "cannot start: chdir: No such file or directory");
}

TEST_CASE("descriptor numbers that make no sense are refused") {
  SubprocessOptions options = child({"exit", "0"});
  options.fds = {{0, 2}};
  CHECK(error_of([&] { Subprocess::spawn(options); })->code() == ErrorCode::InvalidArgument);
  options.fds = {{0, 5}, {1, 5}};
  CHECK(error_of([&] { Subprocess::spawn(options); })->code() == ErrorCode::InvalidArgument);
  options.fds = {{9999, 5}};
  CHECK(error_of([&] { Subprocess::spawn(options); }));
}

TEST_CASE("waiting ends at the deadline and sees the end at once") {
  Hanging hanging;
  const auto start = steady_clock::now();
  CHECK_FALSE(hanging.process->try_wait());
  CHECK_FALSE(hanging.process->wait_until(start + milliseconds(50)));
  CHECK(steady_clock::now() - start >= milliseconds(50));
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(50));
    hanging.process->kill_group();
  });
  CHECK(hanging.process->wait_until(steady_clock::now() + seconds(20))->signal == SIGKILL);
  killer.join();
}

TEST_CASE("a signal reaches the child alone") {
  Hanging hanging;
  hanging.process->send_signal(SIGTERM);
  CHECK(hanging.process->wait().signal == SIGTERM);
}

TEST_CASE("the object takes the whole group with it") {
  Hanging hanging;
  hanging.process.reset();
  CHECK(read_all(hanging.stream) == "");  // returns only when child and grandchild are gone
}

TEST_CASE("grandchildren do not outlive a child that has ended") {
  auto [mine, its] = make_socket_pair();
  SubprocessOptions options = child({"orphan"});
  options.fds = {{its.get(), 5}};
  Subprocess process = Subprocess::spawn(options);
  its.reset();
  CHECK(process.wait().success());
  CHECK(read_all(mine) == "");
}

TEST_CASE("a child can be replaced by assignment") {
  Hanging hanging;
  *hanging.process = Subprocess::spawn(child({"exit", "4"}));
  CHECK(read_all(hanging.stream) == "");
  CHECK(hanging.process->wait().code == 4);
}

TEST_CASE("a child dies with the thread that made it") {
  std::optional<Hanging> hanging;
  std::thread maker([&hanging] { hanging.emplace(); });
  maker.join();
  CHECK(hanging->process->wait().signal == SIGKILL);
}

TEST_CASE("a child of a spawner outlives the thread that asked and dies with the spawner") {
  std::optional<Spawner> spawner;
  spawner.emplace();
  std::optional<Hanging> hanging;
  std::thread asker(
      [&] { hanging.emplace([&](const SubprocessOptions& options) { return spawner->spawn(options); }); });
  asker.join();
  CHECK_FALSE(hanging->process->wait_until(steady_clock::now() + milliseconds(100)));
  spawner.reset();
  CHECK(hanging->process->wait().signal == SIGKILL);
}

TEST_CASE("a spawner hands errors to the thread that asked") {
  Spawner spawner;
  SubprocessOptions options;
  options.program = "/nonexistent/worker";
  CHECK(error_of([&] { spawner.spawn(options); })->code() == ErrorCode::NotFound);
  CHECK(spawner.spawn(child({"exit", "0"})).wait().success());
}

TEST_CASE("many children can be made from several threads at once") {
  Spawner spawner;
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        const SubprocessOptions options = child({"exit", std::to_string(i)});
        good += (i % 2 == 0 ? spawner.spawn(options) : Subprocess::spawn(options)).wait().code == i;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(good == 40);
}

}  // namespace cubind
