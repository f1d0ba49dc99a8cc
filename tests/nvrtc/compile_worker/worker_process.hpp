#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "schemas/worker.pb.h"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind::test {

/// A `cubind-worker compile` process as an agent starts it, without the agent's deadline and caps.
class WorkerProcess {
 public:
  explicit WorkerProcess(const Toolchain& toolchain);
  WorkerProcess(const std::string& nvrtc, const std::string& builtins);

  const v1::CompileWorkerHello& hello() const { return hello_; }
  pid_t pid() const { return child_.pid(); }

  /// Fails the test where the worker ends instead of replying.
  v1::CompileReply compile(const v1::CompileRequest& request);

  /// Closes the socket and returns how the worker ended.
  ExitStatus finish();

 private:
  UniqueFd socket_;
  Subprocess child_;
  v1::CompileWorkerHello hello_;
};

}  // namespace cubind::test
