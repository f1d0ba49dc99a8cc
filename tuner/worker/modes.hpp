// The modes of the cubind-worker executable:
//
//   cubind-worker compile --fd N [options]                  a compile worker
//   cubind-worker device --fd N [--replay TABLE [options]]  a device worker
//
// N is an inherited socket on which the mode speaks worker.proto in frames (base/framing.hpp) until the peer
// closes it.
#pragma once

#include <string>
#include <vector>

namespace cubind::worker {

/// Exit statuses of the worker, for the parent's log; the last reply has the facts.
enum class ExitCode : int {
  Done = 0,        // the peer closed the socket
  Fault = 1,       // the socket or the worker itself failed
  Usage = 2,       // the command line is wrong
  ContextLost = 3  // a kernel left a sticky error; the reply before said so
};

/// Both take the arguments behind `--fd N` and return when the peer has closed the socket. Throw Error where
/// they cannot go on.
ExitCode run_compile_worker(int fd, const std::vector<std::string>& arguments);
ExitCode run_device_worker(int fd, const std::vector<std::string>& arguments);

}  // namespace cubind::worker
