#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "tuner/agent/device/device_finder.hpp"
#include "tuner/agent/lease/agent.hpp"
#include "tuner/agent/options.hpp"

namespace {

bool wait_for_end(const sigset_t& set, const cubind::AgentOptions& options, std::chrono::milliseconds time) {
  const timespec limit{time.count() / 1000, (time.count() % 1000) * 1'000'000};
  if (sigtimedwait(&set, nullptr, &limit) > 0) {
    return true;
  }
  return options.parent_pid && getppid() != *options.parent_pid;
}

int run(const cubind::AgentOptions& options) {
  if (options.list_devices) {
    const std::string gpus = cubind::list_gpus(options.gpus, options.memory_fraction);
    return std::fwrite(gpus.data(), 1, gpus.size(), stdout) == gpus.size() ? 0 : 1;
  }
  // Before any thread starts, so that the main loop alone takes them.
  const sigset_t set = cubind::block_signals({SIGTERM, SIGINT});
  std::signal(SIGPIPE, SIG_IGN);
  cubind::Agent agent(options);
  agent.run([&](std::chrono::milliseconds time) { return wait_for_end(set, options, time); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // the agent's log has its own words for it
  int exit_code = 0;
  const auto options = cubind::parse_agent_options(argc, argv, exit_code);
  if (!options) {
    return exit_code;
  }
  try {
    cubind::init_logging("cubind-agent", options->log_level);
    return run(*options);
  } catch (const std::exception& error) {
    cubind::log_error(error.what());
    return 1;
  }
}
