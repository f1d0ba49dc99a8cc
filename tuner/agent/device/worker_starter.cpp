#include "tuner/agent/device/worker_starter.hpp"

#include <utility>

#include "base/environment.hpp"
#include "base/framing.hpp"

namespace cubind {
namespace {

constexpr int kWorkerFd = 3;

}  // namespace

WorkerStarter::WorkerStarter(Spawner& spawner, std::string program, std::vector<std::string> arguments,
                             std::vector<std::string> environment)
    : spawner_(spawner),
      program_(std::move(program)),
      arguments_(std::move(arguments)),
      environment_(std::move(environment)) {}

WorkerProcess WorkerStarter::start() const {
  auto [mine, theirs] = make_socket_pair();
  SubprocessOptions options;
  options.program = program_;
  options.arguments = {"device", "--fd", std::to_string(kWorkerFd)};
  options.arguments.insert(options.arguments.end(), arguments_.begin(), arguments_.end());
  options.environment = own_environment_with(environment_);
  options.fds = {{theirs.get(), kWorkerFd}};
  return {spawner_.spawn(options), std::move(mine)};
}

}  // namespace cubind
