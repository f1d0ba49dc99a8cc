#include "base/log.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <regex>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

// What the action writes to stderr.
template <typename Action>
std::string stderr_of(const Action& action) {
  const TempDir folder;
  const auto path = folder.path() / "stderr";
  const UniqueFd before(::dup(STDERR_FILENO));
  std::fflush(stderr);
  REQUIRE(std::freopen(path.c_str(), "w", stderr) != nullptr);
  action();
  std::fflush(stderr);
  ::dup2(before.get(), STDERR_FILENO);
  return read_file(path);
}

}  // namespace

TEST_CASE("log lines go to stderr with date program and level") {
  const std::string text = stderr_of([] {
    init_logging("cubind-test", "info");
    log_debug("hidden");
    log_info("shown {}");
    log_warning("careful");
    spdlog::error("code {}", 7);
  });
  const std::regex lines(
      R"((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z cubind-test\[\d+\] (info|warning|error): .*\n){3})");
  INFO(text);
  CHECK(std::regex_match(text, lines));
  CHECK(text.find("info: shown {}\n") != std::string::npos);
  CHECK(text.find("error: code 7\n") != std::string::npos);
  CHECK(text.find("hidden") == std::string::npos);
}

TEST_CASE("what others wrote neither reaches the terminal raw nor looks like an entry of its own") {
  const std::string text = stderr_of([] {
    init_logging("cubind-test", "info");
    log_error("kernel \x1b]0;title\x07\n2026-01-01T00:00:00.000Z cubind-test[1] info: forged");
  });
  CHECK(text.find("kernel \\u001b]0;title\\u0007\n    2026-01-01") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("an unknown log level is refused with the known ones") {
  CHECK_THROWS_AS(init_logging("x", "loud"), Error);
  CHECK_NOTHROW(init_logging("x", "warn"));
}

}  // namespace cubind
