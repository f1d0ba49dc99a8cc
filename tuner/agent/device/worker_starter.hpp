#pragma once

#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"

namespace cubind {

/// A `cubind-worker device` and this end of its socketpair. The process has a group of its own.
struct WorkerProcess {
  Subprocess process;
  UniqueFd socket;
};

/// Starts the device workers of one device. Thread-safe.
class WorkerStarter {
 public:
  /// `arguments` follow `device --fd N`: none for a GPU, `--replay TABLE ...` for the replay device. The
  /// worker gets the environment of this process, with these variables ("NAME=VALUE") in it. `spawner` must
  /// outlive this object and the workers: its thread is their parent.
  WorkerStarter(Spawner& spawner, std::string program, std::vector<std::string> arguments,
                std::vector<std::string> environment);

  /// Throws Error where none can be started.
  WorkerProcess start() const;

 private:
  Spawner& spawner_;
  std::string program_;
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
};

}  // namespace cubind
