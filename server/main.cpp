#include <csignal>
#include <cstdio>
#include <exception>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "server/config.hpp"
#include "server/daemon.hpp"

namespace {

void serve_until_told(cubind::Daemon& daemon, const sigset_t& signals) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || signal != SIGHUP) {
      return;
    }
    daemon.reload();
  }
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
    daemon.stop();
    return daemon.is_deaf() ? 1 : 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cubind: %s\n", fault.what());
    return 1;
  }
}
