#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/agent/compile/compile_input.hpp"

namespace cubind {

/// The program that compile workers run, and the frames that it speaks. Immutable; safe to share between
/// threads.
class CompilerProgram {
 public:
  virtual ~CompilerProgram() = default;

  struct Command {
    std::string program;
    std::vector<std::string> arguments;
    bool limits_its_memory = false;  // it sets RLIMIT_AS of each compile itself
    std::string folder_prefix =
        {};  // of a folder for its files, which it gets as --folder; empty: it needs none
  };
  /// `fd`: the descriptor of its socket.
  virtual Command command(int fd, std::chrono::milliseconds deadline) const = 0;
  /// Both readers throw Error(Internal) for a frame that is not one of this program.
  virtual v1::CompileWorkerHello hello(const std::string& frame) const = 0;
  virtual std::string request(const CompileInput& input, bool worker_has_headers) const = 0;
  virtual v1::CompileReply reply(const std::string& frame, const CompileInput& input) const = 0;
};

/// `cubind-worker compile` with an NVRTC: its frames are messages of worker.proto.
std::shared_ptr<const CompilerProgram> nvrtc_program(std::string worker, std::string nvrtc,
                                                     std::string builtins);

/// The worker of the Python package that has Triton (python/cubind/triton/worker): its frames are a JSON
/// header and bytes. `python`: one that has Triton.
std::shared_ptr<const CompilerProgram> triton_program(std::string python, std::string worker);

}  // namespace cubind
