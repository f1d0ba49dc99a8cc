#include "base/log_sink.hpp"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace cubind {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// A logger whose lines come out at another descriptor.
struct Log {
  explicit Log(bool socket) {
    std::array<int, 2> ends{};
    REQUIRE((socket ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())
                    : ::pipe2(ends.data(), O_CLOEXEC)) == 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
    ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
    logger = std::make_unique<spdlog::logger>("test", std::make_shared<LogSink>(in.get()));
    logger->set_pattern("%l %v");
  }
  std::string read_all() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(out.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return text;
  }
  UniqueFd in, out;
  std::unique_ptr<spdlog::logger> logger;
};

TEST_CASE("a log without a reader is not waited for and tells the number of dropped lines once it is read") {
  const Log log(GENERATE(false, true));
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) {
    log.logger->info("line " + std::to_string(i) + std::string(100, '.'));
  }
  std::string before = log.read_all();
  CHECK_THAT(before, StartsWith("info line 0."));
  log.logger->info("after");
  const auto whole = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  std::string rest = log.read_all();
  if (rest.front() == '\n') {
    rest.erase(0, 1);  // the end of a torn line
  }
  CHECK(rest == "warning " + std::to_string(kLines - whole) +
                    " lines were dropped: the log was not read\ninfo after\n");
}

TEST_CASE("a line longer than a pipe takes at once comes out whole") {
  const Log log(false);
  const std::string text(20'000, 'x');
  log.logger->info(text);
  CHECK(log.read_all() == "info " + text + "\n");
}

TEST_CASE("a torn line does not run into the next one") {
  const Log log(false);
  log.logger->info(std::string(200'000, 'x'));
  CHECK_THAT(log.read_all(), !Contains("\n"));
  log.logger->info("after");
  CHECK_THAT(log.read_all(), Contains("\nwarning 1 lines were dropped: the log was not read\ninfo after\n"));
}

}  // namespace
}  // namespace cubind
