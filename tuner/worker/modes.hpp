// The modes of the cubind-worker executable:
//
//   cubind-worker compile --fd N [options]                  a compile worker
//   cubind-worker device --fd N [--replay TABLE]            a device worker
//   cubind-worker launch FILE                               launches a variant once for a profiler, and ends
//
// N is an inherited socket on which the mode speaks worker.proto in frames (base/framing.hpp) until the peer
// closes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/worker/device_backend.hpp"

namespace cubind::worker {

/// Exit statuses of the worker, for the parent's log; the last reply has the facts.
enum class ExitCode : int {
  Done = 0,        // the peer closed the socket
  Fault = 1,       // the socket or the worker itself failed
  Usage = 2,       // the command line is wrong
  ContextLost = 3  // a kernel left a sticky error; the reply before said so
};

/// Makes the replay device from the arguments of a device worker.
using MakeReplay = std::function<std::unique_ptr<DeviceBackend>(const std::vector<std::string>& arguments)>;

/// Both take the arguments behind `--fd N` and return when the peer has closed the socket. Throw Error where
/// they cannot go on.
ExitCode run_compile_worker(int fd, const std::vector<std::string>& arguments);
ExitCode run_device_worker(int fd, const std::vector<std::string>& arguments, const MakeReplay& make_replay);

/// `path`: of a LaunchFile. Uses the first visible GPU. Throws as launch_profiled() does.
ExitCode run_launch(const std::string& path);

/// The program, with that replay device. Messages go to stderr.
int worker_main(int argc, char** argv, const MakeReplay& make_replay);

}  // namespace cubind::worker
