#include <cstdio>
#include <exception>
#include <variant>

#include "base/error.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/commands.hpp"

namespace {

using cubind::ctl::CommandLine;
using cubind::ctl::ExitCode;

ExitCode run(const CommandLine& line) {
  return std::visit([&](const auto& options) { return cubind::ctl::run(options, line.common); },
                    line.command);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = cubind::ctl::parse_command_line(argc, argv);
    const auto* line = std::get_if<CommandLine>(&parsed);
    return static_cast<int>(line != nullptr ? run(*line) : std::get<ExitCode>(parsed));
  } catch (const cubind::Error& error) {
    std::fprintf(stderr, "cubindctl: %s\n", error.what());
    return static_cast<int>(cubind::ctl::exit_code_of(error.code()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cubindctl: %s\n", error.what());
    return static_cast<int>(ExitCode::Failure);
  }
}
