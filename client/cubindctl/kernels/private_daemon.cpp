#include "client/cubindctl/kernels/private_daemon.hpp"

#include <chrono>
#include <thread>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "client/connection.hpp"

namespace cubind::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStarts{30};
constexpr std::chrono::milliseconds kPause{50}, kAnswers{1000};

Subprocess start(const fs::path& folder) {
  SubprocessOptions options;
  options.program = (executable_dir() / "cubind").string();
  options.arguments = {
      "--socket",    folder / "s", "--db", folder / "store.db", "--no-shipped-kernels", "--no-shipped-tables",
      "--tune-when", "never"};
  options.environment = own_environment();
  options.stderr_to = ChildStream::Null;
  return Subprocess::spawn(options);
}

bool knows_its_compilers(const Connection& connection) {
  try {
    return !connection.get_status(kAnswers).agent_expected();
  } catch (const Error&) {
    return false;  // it does not listen yet
  }
}

}  // namespace

PrivateDaemon::PrivateDaemon() : process_(start(folder_.path())) {
  const Connection connection(address());
  const auto until = std::chrono::steady_clock::now() + kStarts;
  while (!knows_its_compilers(connection)) {
    const auto ended = process_.try_wait();
    if (ended || std::chrono::steady_clock::now() > until) {
      throw Error(ErrorCode::Unavailable, "cubind",
                  "a daemon for this check does not start" + (ended ? ": " + ended->describe() : "") +
                      "; run `cubind` to see why");
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::string PrivateDaemon::address() const { return "unix://" + (folder_.path() / "s").string(); }

}  // namespace cubind::ctl
