#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tuner/worker/modes.hpp"

namespace {

using cubind::worker::ExitCode;

constexpr char kUsage[] =
    "usage: cubind-worker compile --fd N [options]\n"
    "       cubind-worker device --fd N [--replay TABLE [options]]\n"
    "cubind-agent starts its workers itself; N is a socket that it hands down.\n";

std::optional<int> parse_fd(const char* text) {
  int fd = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, fd);
  if (error != std::errc{} || stop != end || fd < 0) {
    return std::nullopt;
  }
  return fd;
}

ExitCode run(const std::string& mode, int fd, const std::vector<std::string>& arguments) {
  cubind::init_logging("cubind-worker");
  try {
    if (mode == "compile") {
      return cubind::worker::run_compile_worker(fd, arguments);
    }
    return cubind::worker::run_device_worker(fd, arguments);
  } catch (const cubind::Error& error) {
    cubind::log_error(error.what());
    return error.code() == cubind::ErrorCode::InvalidArgument ? ExitCode::Usage : ExitCode::Fault;
  } catch (const std::exception& error) {
    cubind::log_error(error.what());
    return ExitCode::Fault;
  }
}

}  // namespace

/// NVRTC takes __DATE__ and __TIME__ from ctime(), and the artifact key holds no date: every compile has the
/// same one. The program exports this function, so that a library that is opened later finds it before the
/// system's.
extern "C" char* ctime(const time_t* /*time*/) noexcept {
  static thread_local char text[32];
  std::strcpy(text, "Thu Jan  1 00:00:00 1970\n");  // an earlier caller may have written to it
  return text;
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if ((mode != "compile" && mode != "device") || argc < 4 || std::strcmp(argv[2], "--fd") != 0) {
    std::fputs(kUsage, stderr);
    return static_cast<int>(ExitCode::Usage);
  }
  const std::optional<int> fd = parse_fd(argv[3]);
  if (!fd) {
    std::fprintf(stderr, "cubind-worker: --fd %s: not a descriptor\n", argv[3]);
    return static_cast<int>(ExitCode::Usage);
  }
  return static_cast<int>(run(mode, *fd, std::vector<std::string>(argv + 4, argv + argc)));
}
