#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tuner/worker/compile_worker.hpp"

using Catch::Matchers::Contains;
using cubind::worker::parse_compile_worker_options;

TEST_CASE("both libraries and the CPU time are taken from the command line") {
  const auto options =
      parse_compile_worker_options({"--nvrtc", "/a", "--builtins", "/b", "--cpu-seconds", "7"});
  CHECK(options.nvrtc == "/a");
  CHECK(options.builtins == "/b");
  CHECK(options.cpu_seconds == 7);
}

TEST_CASE("a wrong command line is refused with the argument") {
  CHECK_THROWS_WITH(parse_compile_worker_options({"--nvrtc", "/a"}), Contains("--builtins"));
  CHECK_THROWS_WITH(parse_compile_worker_options({"--nvrtc", "a", "--builtins", "/b"}), Contains("absolute"));
  CHECK_THROWS_WITH(parse_compile_worker_options({"--nvrtc", "/a", "--builtins"}),
                    Contains("\"--builtins\" has no value"));
  CHECK_THROWS_WITH(parse_compile_worker_options({"--include", "/a"}),
                    Contains("\"--include\" is not an option"));
  CHECK_THROWS_WITH(parse_compile_worker_options({"--cpu-seconds", "1x"}),
                    Contains("\"1x\" is not a number"));
}
