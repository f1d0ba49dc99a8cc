#include <google/protobuf/stubs/logging.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <variant>

#include "base/error.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/command_line.hpp"
#include "client/cubindctl/terminal/plain_output.hpp"

namespace {

using cubind::ctl::CommandLine;
using cubind::ctl::ExitCode;

ExitCode run(const CommandLine& line) {
  return std::visit([&](const auto& options) { return cubind::ctl::run(options, line.common); },
                    line.command);
}

/// All output has arrived, or the command has failed: a full disk must not silently leave half a table
/// behind.
void flush_output() {
  if (!std::cout.flush() || std::ferror(stdout) != 0) {
    throw cubind::Error(cubind::ErrorCode::Internal, "standard output",
                        "not all of it could be written: is the disk full, or is it closed?");
  }
}

/// A reader that closes the pipe early (`| head`) ends the program, as it ends any filter; a parent may have
/// left the signal ignored. The errors of connections say what gRPC and protobuf would write of them.
void set_up_process() {
  std::signal(SIGPIPE, SIG_DFL);
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  set_up_process();
  const cubind::ctl::PlainOutput plain_output(std::cout), plain_errors(std::cerr);
  const auto complain = [](const std::exception& error) {
    std::cerr << "cubindctl: " << error.what() << std::endl;
  };
  try {
    const auto parsed = cubind::ctl::parse_command_line(argc, argv);
    const auto* line = std::get_if<CommandLine>(&parsed);
    const ExitCode code = line != nullptr ? run(*line) : std::get<ExitCode>(parsed);
    flush_output();
    return static_cast<int>(code);
  } catch (const cubind::Error& error) {
    complain(error);
    return static_cast<int>(cubind::ctl::exit_code_of(error.code()));
  } catch (const std::exception& error) {
    complain(error);
    return static_cast<int>(ExitCode::Failure);
  }
}
