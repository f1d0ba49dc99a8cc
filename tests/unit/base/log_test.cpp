#include "base/log.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/request_id.hpp"

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

TEST_CASE("a line in json has its text as it is and the request that the thread works for") {
  ::setenv("CUBIND_LOG_FORMAT", "json", 1);
  const std::string text = stderr_of([] {
    init_logging("cubind-test", "info");
    const RequestScope scope(request_id_from("abc.1"));
    log_warning("a \"quoted\" word\nand more");
  });
  ::unsetenv("CUBIND_LOG_FORMAT");
  const auto line = nlohmann::json::parse(text);
  CHECK(line["level"] == "warning");
  CHECK(line["program"] == "cubind-test");
  CHECK(line["pid"] == ::getpid());
  CHECK(line["text"] == "a \"quoted\" word\n    and more");
  CHECK(line["request"] == "abc.1");
  CHECK(is_iso8601_utc(line["time"].get<std::string>()));
}

TEST_CASE("a line names the innermost request and none behind its end") {
  const std::string text = stderr_of([] {
    init_logging("cubind-test", "info");
    const RequestScope outer(request_id_from("outer"));
    {
      const RequestScope inner(request_id_from("inner"));
      log_info("one");
    }
    log_info("two");
  });
  CHECK(text.find("one [request inner]\n") != std::string::npos);
  CHECK(text.find("two [request outer]\n") != std::string::npos);
  CHECK(current_request() == nullptr);
}

TEST_CASE("an id that is not well formed is replaced by one that is made") {
  CHECK(*request_id_from("job-7_a.B") == "job-7_a.B");
  for (const std::string& bad :
       {std::string(), std::string(65, 'a'), std::string("a b"), std::string("a\"")}) {
    const RequestId made = request_id_from(bad);
    CHECK(made->size() == 16);
    CHECK(*made != *request_id_from(bad));
  }
}

TEST_CASE("an id is made when a line needs it and once") {
  int made = 0;
  const std::function<RequestId()> make = [&] {
    ++made;
    return request_id_from("");
  };
  const RequestScope scope(make);
  CHECK(made == 0);
  CHECK(current_request() == current_request());
  CHECK(made == 1);
}

TEST_CASE("an unknown log format is refused with the known ones") {
  ::setenv("CUBIND_LOG_FORMAT", "xml", 1);
  CHECK_THROWS_WITH(init_logging("x", "warn"), Catch::Contains("neither text nor json"));
  ::unsetenv("CUBIND_LOG_FORMAT");
}

TEST_CASE("an unknown log level is refused with the known ones") {
  CHECK_THROWS_AS(init_logging("x", "loud"), Error);
  CHECK_NOTHROW(init_logging("x", "warn"));
}

}  // namespace cubind
