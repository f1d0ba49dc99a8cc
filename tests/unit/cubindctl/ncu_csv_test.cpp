#include "client/cubindctl/profile/ncu_csv.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "tests/support/paths.hpp"

namespace cubind::ctl {
namespace {

using Catch::Contains;

std::string log_text() { return read_file(test::source_dir() / "tests/golden/ncu/rmsnorm.csv"); }

std::vector<ProfiledLaunch> read(const std::string& text) { return read_ncu_csv(text, "p.csv"); }

std::vector<ProfiledLaunch> read_with(std::string_view from, std::string_view to) {
  REQUIRE_THAT(log_text(), Contains(std::string(from)));
  return read(replaced(log_text(), from, to));
}

Error error_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("it was read");
}

}  // namespace

TEST_CASE("the counters of a launch are read from what ncu prints") {
  const std::vector<ProfiledLaunch> launches = read(log_text());
  REQUIRE(launches.size() == 1);
  const ProfiledLaunch& launch = launches.front();
  CHECK(launch.entry_symbol == "SYMBOL");
  CHECK(launch.time_us == Approx(25.376));
  CHECK(launch.moved_bytes() == 61'878'272);
  CHECK(launch.memory_share == Approx(0.7125));
  CHECK(launch.occupancy == Approx(0.8825));
  CHECK(launch.occupancy_limit == Approx(1));
  CHECK(launch.tensor_share == 0.0);
  CHECK(launch.registers == 32.0);
  CHECK(launch.block_limits.front() == BlockLimit{"registers", 4});
  CHECK(launch.stalls == std::vector<Stall>{{"long_scoreboard", 31.75}, {"barrier", 9.5}, {"wait", 4.125}});
}

TEST_CASE("what ncu 2025.3 printed on an H100 is read") {
  const auto launches = read(read_file(test::source_dir() / "tests/golden/ncu/h100_rmsnorm.csv"));
  REQUIRE(launches.size() == 1);
  const ProfiledLaunch& launch = launches.front();
  CHECK(launch.entry_symbol ==
        "_Z15rmsnorm_forwardI13__nv_bfloat16Li256ELi4ELi1ELi3ELi2ELi0ELx4096EEvPKT_S3_PS1_xf");
  CHECK(launch.time_us == Approx(350.368));
  CHECK(launch.moved_bytes() == 537'081'344 + 515'932'928);
  CHECK(launch.memory_share == Approx(0.8966));
  CHECK(launch.block_limits.front() == BlockLimit{"registers", 6});
  CHECK(launch.stalls.front() == Stall{"long_scoreboard", 22.43});
}

TEST_CASE("every metric that is asked for by name is read") {
  for (const std::string& metric : ncu_metrics()) {
    CHECK_THAT(log_text(), Contains("\"" + metric + "\""));
  }
}

TEST_CASE("units are those that ncu has used") {
  CHECK(read_with(R"("%","ns",)", R"("%","msecond",)").front().time_us == Approx(25'376'000));
  CHECK(read_with(R"("byte","byte")", R"("Mbyte","byte")").front().read_bytes == Approx(33'566'720e6));
  CHECK_THROWS_WITH(
      read_with(R"("%","ns",)", R"("%","hour",)"),
      "p.csv line 6, column 15 (gpu__time_duration.sum): the unit \"hour\" is not known: run ncu "
      "with --print-units base");
}

TEST_CASE("an optional counter that the GPU lacks is absent") {
  const auto launches = read_with(R"("7.76","100","0",)", R"("n/a","100","n/a",)");
  CHECK_FALSE(launches.front().tensor_share);
  CHECK_FALSE(launches.front().waves);
}

TEST_CASE("what is not a whole table is refused at its place") {
  CHECK_THROWS_WITH(read_with("33,566,720", "33,5,720"),
                    "p.csv line 6, column 12 (dram__bytes_read.sum): \"33,5,720\" is not a number from 0");
  CHECK_THROWS_WITH(read_with("33,566,720", "-1"), Contains("is not a number from 0"));
  CHECK_THROWS_WITH(read_with("33,566,720", "n/a"), Contains("does this GPU have the counter?"));
  CHECK_THROWS_WITH(read_with("dram__bytes_read.sum", "dram__bytes_other.sum"),
                    Contains("p.csv line 4: has no column dram__bytes_read.sum"));
  CHECK_THROWS_WITH(read_with(R"(,"31.75","1","4.125")", ""), Contains("the file is cut off or changed"));
  const std::string text = log_text();
  CHECK_THROWS_WITH(read(text.substr(0, text.find("\"\",\"\""))), Contains("run ncu with --page raw"));
}

TEST_CASE("a user who may not read the counters gets the ways to read them") {
  const Error error = error_of(
      "==PROF== Connected to process 1 (/bin/w)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
      "permission to access NVIDIA GPU Performance Counters on the target device 0.\n");
  CHECK(error.code() == ErrorCode::PermissionDenied);
  CHECK_THAT(error.what(), Contains("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST_CASE("a file that ncu did not write is wrong input") {
  const Error error = error_of("kernel,N\nrmsnorm_forward,4096\n");
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK_THAT(error.what(), Contains("is not what ncu prints"));
}

TEST_CASE("a log without a launch says what ncu said") {
  const Error error = error_of(
      "==PROF== Disconnected from process 1\n==ERROR== The application returned an error code (1).\n"
      "==WARNING== No kernels were profiled.\n");
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  CHECK_THAT(error.what(), Contains("The application returned an error code (1). No kernels were profiled."));
  CHECK_THAT(error_of("").what(), Contains("ncu saw no launch of the kernel: run the launcher"));
  const std::string text = log_text();
  CHECK(error_of(text.substr(0, text.find("\"0\",\"4242\""))).code() == ErrorCode::FailedPrecondition);
}

}  // namespace cubind::ctl
