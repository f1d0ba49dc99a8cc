#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "server/config.hpp"
#include "server/copy_store.hpp"
#include "server/daemon.hpp"
#include "server/fsck.hpp"
#include "server/grpc_limits.hpp"

namespace {

// Longer than everything that the daemon waits for, shorter than the ten seconds that it promises.
constexpr std::chrono::seconds kStopLimit{8};
// What has not started has nothing to wait for.
constexpr std::chrono::seconds kFailedStartLimit{1};

/// The signals, taken by a thread of its own: what the main thread does then, opening a large store or
/// reading folders that a disk holds up, must not keep SIGTERM waiting.
class Signals {
 public:
  explicit Signals(const sigset_t& signals) {
    std::thread([this, signals] { take(signals); }).detach();
  }

  void wait_for_end() const { ends_.wait(false); }

  /// Of the process, once it ends.
  int exit_code() const { return exit_code_; }

  /// The process ends with 1, within the limit for a failed start.
  void fail_start() {
    limit_ = kFailedStartLimit;
    ::kill(::getpid(), cubind::kListenerLost);
  }

 private:
  /// gRPC's Shutdown waits, without a limit of its own, until it has made and given up a call for every
  /// stream that was ever opened; a disk may stand still. What was acknowledged lies in the store by then, as
  /// it has to for a daemon that is killed.
  [[noreturn]] void take(const sigset_t& signals) {
    int signal = 0;
    sigwait(&signals, &signal);
    exit_code_ = signal == cubind::kListenerLost ? 1 : 0;
    ends_ = true;
    ends_.notify_one();
    const std::chrono::seconds limit = limit_;
    std::this_thread::sleep_for(limit);
    cubind::log_warning("has not stopped within " + std::to_string(limit.count()) +
                        " s: ends as it is, and the next start goes on from the store");
    std::_Exit(exit_code_);
  }

  std::atomic<bool> ends_{false};
  std::atomic<int> exit_code_{0};
  std::atomic<std::chrono::seconds> limit_{kStopLimit};
};

void complain(const std::exception& fault) {
  std::fprintf(stderr, "cubind: %s\n", cubind::printable(fault.what()).c_str());
}

/// The fault is printed before anything is destroyed: gRPC waits forever for threads that it could not make.
bool has_started(cubind::Daemon& daemon, Signals& told) {
  try {
    daemon.start();
    return true;
  } catch (const std::exception& fault) {
    complain(fault);
    told.fail_start();
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Before the first thread is made, so that the main thread alone takes them.
  const sigset_t signals = cubind::block_signals({SIGTERM, SIGINT, cubind::kListenerLost});
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // its terminal may close
  int fault_code = 1;
  try {
    int exit_code = 0;
    const auto config = cubind::parse_command_line(argc, argv, exit_code);
    if (!config) {
      return exit_code;
    }
    ::setenv("CUBIND_LOG_FORMAT", config->log_format.c_str(),
             1);  // the agent's too; no other thread runs yet
    cubind::init_logging("cubind", config->log_level);
    if (config->fsck) {
      fault_code = 2;  // 1 is for a damaged store
      return cubind::fsck(config->database);
    }
    if (!config->copy_to.empty() || !config->copy_to_url.empty()) {
      return cubind::copy_store(*config);
    }
    // Never destroyed: its thread waits as long as the process lives.
    auto& told = *new Signals(signals);
    cubind::Daemon daemon(*config);
    if (!has_started(daemon, told)) {
      return fault_code;
    }
    told.wait_for_end();
    daemon.stop();
    return told.exit_code();
  } catch (const std::exception& fault) {
    complain(fault);
    return fault_code;
  }
}
