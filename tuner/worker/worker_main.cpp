#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tuner/worker/modes.hpp"

namespace cubind::worker {
namespace {

constexpr char kUsage[] =
    "usage: cubind-worker compile --fd N [options]\n"
    "       cubind-worker device --fd N [--replay TABLE]\n"
    "       cubind-worker launch FILE\n"
    "cubind-agent starts its workers itself; N is a socket that it hands down. `cubindctl profile` writes "
    "FILE\nand launches it under ncu.\n";

std::optional<int> parse_fd(const char* text) {
  int fd = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, fd);
  if (error != std::errc{} || stop != end || fd < 0) {
    return std::nullopt;
  }
  return fd;
}

ExitCode run(const std::function<ExitCode()>& mode) {
  init_logging("cubind-worker");
  try {
    return mode();
  } catch (const Error& error) {
    log_error(error.what());
    return error.code() == ErrorCode::InvalidArgument ? ExitCode::Usage : ExitCode::Fault;
  } catch (const std::exception& error) {
    log_error(error.what());
    return ExitCode::Fault;
  }
}

}  // namespace

int worker_main(int argc, char** argv, const MakeReplay& make_replay) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "launch" && argc == 3) {
    return static_cast<int>(run([&] { return run_launch(argv[2]); }));
  }
  if ((mode != "compile" && mode != "device") || argc < 4 || std::strcmp(argv[2], "--fd") != 0) {
    std::fputs(kUsage, stderr);
    return static_cast<int>(ExitCode::Usage);
  }
  const std::optional<int> fd = parse_fd(argv[3]);
  if (!fd) {
    std::fprintf(stderr, "cubind-worker: --fd %s: not a descriptor\n", argv[3]);
    return static_cast<int>(ExitCode::Usage);
  }
  const std::vector<std::string> arguments(argv + 4, argv + argc);
  return static_cast<int>(run([&] {
    return mode == "compile" ? run_compile_worker(*fd, arguments)
                             : run_device_worker(*fd, arguments, make_replay);
  }));
}

}  // namespace cubind::worker
