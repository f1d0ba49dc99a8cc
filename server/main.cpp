#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "server/config.hpp"
#include "server/copy_store.hpp"
#include "server/daemon.hpp"
#include "server/fsck.hpp"

namespace {

// Longer than everything that the daemon waits for, shorter than the ten seconds that it promises.
constexpr std::chrono::seconds kStopLimit{8};

/// The signals, taken by a thread of its own: what the main thread does then, opening a large store or
/// reading folders that a disk holds up, must not keep SIGTERM waiting.
class Signals {
 public:
  explicit Signals(const sigset_t& signals) {
    std::thread([this, signals] { take(signals); }).detach();
  }

  /// Waits for SIGHUP (true) or the end (false).
  bool wait_for_reload() {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [this] { return ends_ || reload_; });
    reload_ = false;
    return !ends_;
  }

  /// Exit code used when shutdown times out.
  void set_exit_code(int code) { exit_code_ = code; }

 private:
  /// gRPC's Shutdown waits, without a limit of its own, until it has made and given up a call for every
  /// stream that was ever opened; a disk may stand still. What was acknowledged lies in the store by then, as
  /// it has to for a daemon that is killed.
  [[noreturn]] void take(const sigset_t& signals) {
    int signal = SIGHUP;
    while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
      tell(reload_);
    }
    tell(ends_);
    std::this_thread::sleep_for(kStopLimit);
    cubind::log_warning("has not stopped within " + std::to_string(kStopLimit.count()) +
                        " s: ends as it is, and the next start goes on from the store");
    std::_Exit(exit_code_);
  }

  void tell(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    told_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable told_;
  bool reload_ = false, ends_ = false;
  std::atomic<int> exit_code_{0};
};

}  // namespace

int main(int argc, char** argv) {
  // Before the first thread is made, so that the main thread alone takes them.
  const sigset_t signals = cubind::block_signals({SIGTERM, SIGINT, SIGHUP});
  std::signal(SIGPIPE, SIG_IGN);
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
    while (told.wait_for_reload()) {
      daemon.reload();
    }
    const int result = daemon.is_deaf() ? 1 : 0;
    told.set_exit_code(result);
    daemon.stop();
    return result;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cubind: %s\n", fault.what());
    return fault_code;
  }
}
