#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "client/connection.hpp"
#include "client/web/site.hpp"

namespace {

constexpr int kPriority = 5;  // nice: callers of the daemon come before those who look

}  // namespace

int main(int argc, char** argv) {
  const sigset_t signals = cubind::block_signals({SIGTERM, SIGINT});
  std::signal(SIGPIPE, SIG_IGN);
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  ::setenv("CUBIND_ROLE", "reader", 1);  // no thread runs yet
  CLI::App app("cubind-web: pages that show what a daemon has tuned, what is not used and why, and what runs",
               "cubind-web");
  app.set_version_flag("--version", std::string("cubind-web ") + cubind::kVersion);
  std::string listen, address;
  app.add_option("listen", listen, "[HOST:]PORT of this machine's loopback (default host: 127.0.0.1)")
      ->required();
  app.add_option("--address", address, "the daemon's address (default: CUBIND_ADDRESS, else its socket)");
  CLI11_PARSE(app, argc, argv);
  try {
    cubind::init_logging("cubind-web", "info");
    ::setpriority(PRIO_PROCESS, 0, kPriority);
    const cubind::RealClock clock;
    cubind::web::Snapshots snapshots(cubind::resolve_address(address), clock);
    cubind::web::Site site(snapshots);
    const cubind::web::HttpServer server(
        listen, [&](const cubind::web::Request& request) { return site.answer(request); });
    cubind::log_info("the pages of " + snapshots.address() +
                     " are at http://127.0.0.1:" + std::to_string(server.port()) + "/");
    int signal = 0;
    sigwait(&signals, &signal);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cubind-web: %s\n", cubind::printable(fault.what()).c_str());
    return 1;
  }
}
