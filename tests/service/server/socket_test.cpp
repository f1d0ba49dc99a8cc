// The users that reach the Unix sockets.
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "base/error.hpp"
#include "base/subprocess.hpp"
#include "server/access/caller_limits.hpp"
#include "server/service/context.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/other_users.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// errno of connect() in a process of another user; 0: it succeeded.
int connect_as(uid_t user, const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_other = user == ::geteuid() || (::setgid(user) == 0 && ::setuid(user) == 0);
    const bool failed =
        !is_other || ::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0;
    ::_exit(failed ? errno : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

constexpr uid_t kOther = 65534;

struct Ran {
  int code = 0;
  std::string words;
};

/// cubindctl as another user, with the groups of the test alone.
Ran ctl_as(uid_t user, gid_t group, const std::string& address, std::vector<std::string> arguments) {
  SubprocessOptions options;
  options.program = "/usr/bin/setpriv";
  options.arguments = {"--reuid=" + std::to_string(user), "--regid=" + std::to_string(group),
                       "--clear-groups", (bin_dir() / "cubindctl").string()};
  std::ranges::move(arguments, std::back_inserter(options.arguments));
  options.arguments.insert(options.arguments.end(), {"--address", address});
  options.stderr_to = ChildStream::Pipe;
  options.stdout_to = ChildStream::Null;
  Subprocess run = Subprocess::spawn(options);
  Ran ran;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::read(run.stderr_pipe().get(), buffer.data(), buffer.size())) > 0;) {
    ran.words.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ran.code = run.wait().code.value_or(-1);
  return ran;
}

/// With a socket for the group kGroup, which need have no name here.
struct GroupDaemon : DaemonFixture {
  static constexpr gid_t kGroup = 4242;
  const std::filesystem::path group_socket = folder() / "s-ml";

  explicit GroupDaemon(CallerRole role) {
    REQUIRE(::chmod(folder().c_str(), 0755) == 0);
    config().socket_group = SocketGroup{.name = "ml", .id = kGroup, .role = role};
    restart();
  }
  Ran ctl(uid_t user, gid_t group, std::vector<std::string> arguments) {
    return ctl_as(user, group, "unix://" + group_socket.string(), std::move(arguments));
  }
};

bool may_change_users() {
  if (::geteuid() != 0 || !std::filesystem::exists("/usr/bin/setpriv")) {
    skip_test("only root, with util-linux's setpriv, can start a process of another user");
    return false;
  }
  for (const auto& needed : {bin_dir(), std::filesystem::temp_directory_path()}) {
    if (const auto closed = closed_to_others(needed)) {
      skip_test("other users cannot enter " + closed->string());
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the callers of the group's socket are readers and the owner of the daemon's stays an admin") {
  if (!may_change_users()) {
    return;
  }
  GroupDaemon daemon(CallerRole::Reader);
  struct stat info {};
  REQUIRE(::stat(daemon.config().socket.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  REQUIRE(::stat(daemon.group_socket.c_str(), &info) == 0);
  CHECK(((info.st_mode & 0777) == 0660 && info.st_gid == GroupDaemon::kGroup));
  CHECK(daemon.ctl(kOther, GroupDaemon::kGroup, {"devices"}).words.empty());
  const Ran refused = daemon.ctl(kOther, GroupDaemon::kGroup, {"backup", "-o", "/tmp/cubind-refused.db"});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.words, Contains("needs the role admin") && Contains("the group ml is reader") &&
                                Contains("--socket-group"));
  const std::vector<std::string> backup = {"backup", "-o", (daemon.folder() / "backup.db").string()};
  CHECK(daemon.ctl(::geteuid(), 0, backup).code != 0);  // also root, who passes any mode
  CHECK(ctl_as(::geteuid(), 0, daemon.address(), backup).code == 0);
}

TEST_CASE("the members of a group of tuners are one caller") {
  if (!may_change_users()) {
    return;
  }
  GroupDaemon daemon(CallerRole::Tuner);
  const FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  for (const uid_t user : {kOther, kOther - 1}) {
    const std::string problem = "N=" + std::to_string(user) + ",T=f32";
    CHECK(daemon.ctl(user, GroupDaemon::kGroup, {"tune", "vector_add", "--problem", problem, "--detach"})
              .code == 0);
  }
  CHECK(daemon.context().limits.held("the group ml", Held::Jobs) == 2);
}

TEST_CASE("a user who is not in the group reaches neither socket") {
  if (!may_change_users()) {
    return;
  }
  GroupDaemon daemon(CallerRole::Reader);
  CHECK_THAT(daemon.ctl(kOther, kOther, {"devices"}).words,
             Contains("Permission denied") && Contains("cubind --socket-group"));
  CHECK(connect_as(kOther, daemon.config().socket) == EACCES);
}

TEST_CASE("a socket that members of its group cannot reach is refused with the folder") {
  DaemonFixture daemon;
  REQUIRE(::chmod(daemon.folder().c_str(), 0700) == 0);
  daemon.config().socket_group = SocketGroup{.name = "ml", .id = ::getegid() + 1};
  CHECK_THAT(message_of([&] { daemon.restart(); }),
             Contains("--socket-group ml") && Contains("cannot enter the folder"));
}

TEST_CASE("another user does not reach the Unix socket even where its folder is open") {
  if (!may_change_users()) {
    return;
  }
  DaemonFixture daemon;
  REQUIRE(::chmod(daemon.folder().c_str(), 0755) == 0);
  CHECK(connect_as(::geteuid(), daemon.config().socket) == 0);
  CHECK(connect_as(kOther, daemon.config().socket) == EACCES);
}

}  // namespace cubind::test
