#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "server/config.hpp"
#include "server/daemon.hpp"

namespace {

// Longer than everything that the daemon waits for, shorter than the ten seconds that it promises.
constexpr std::chrono::seconds kStopLimit{8};

void serve_until_told(cubind::Daemon& daemon, const sigset_t& signals) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || signal != SIGHUP) {
      return;
    }
    daemon.reload();
  }
}

/// gRPC's Shutdown waits, without a limit of its own, until it has made and given up a call for every stream
/// that was ever opened; a disk may stand still. What was acknowledged lies in the store by then, as it has
/// to for a daemon that is killed.
void end_in_any_case(int exit_code) {
  std::thread([exit_code] {
    std::this_thread::sleep_for(kStopLimit);
    cubind::log_warning("has not stopped within " + std::to_string(kStopLimit.count()) +
                        " s: ends as it is, and the next start goes on from the store");
    std::_Exit(exit_code);
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  // Before the first thread is made, so that the main thread alone takes them.
  const sigset_t signals = cubind::block_signals({SIGTERM, SIGINT, SIGHUP});
  std::signal(SIGPIPE, SIG_IGN);
  try {
    int exit_code = 0;
    const auto config = cubind::parse_command_line(argc, argv, exit_code);
    if (!config) {
      return exit_code;
    }
    cubind::init_logging("cubind", config->log_level);
    cubind::Daemon daemon(*config);
    serve_until_told(daemon, signals);
    const int result = daemon.is_deaf() ? 1 : 0;
    end_in_any_case(result);
    daemon.stop();
    return result;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cubind: %s\n", fault.what());
    return 1;
  }
}
