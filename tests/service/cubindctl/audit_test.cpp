// The checks before a variant is shipped, against a daemon.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

const Json& line_of(const Json& record, const std::string& check) {
  for (const Json& line : record["checks"]) {
    if (line["check"] == check) {
      return line;
    }
  }
  throw std::runtime_error("no check " + check);
}

}  // namespace

TEST_CASE("audit holds each record of a kernel against the checks") {
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}}};
  const auto none = ctl(daemon, {"audit", kTinyKernel});
  CHECK(none.exit_code == 4);
  CHECK_THAT(none.err, Contains("has no such record: `cubindctl tune scale --problem"));
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2)), "--problem",
                       text_of(tiny_problem(3))})
              .exit_code == 0);

  const auto audited = ctl(daemon, {"audit", kTinyKernel, "--json"});
  CHECK(audited.exit_code == 1);
  const Json document = Json::parse(audited.out);
  REQUIRE(document["records"].size() == 2);
  CHECK(document["failed"] == 4);  // each record is replayed, and the reference is its own default
  const Json& record = document["records"][0];
  CHECK(line_of(record, "measurement")["verdict"] == "fail");
  CHECK(line_of(record, "today")["verdict"] == "ok");
  CHECK(line_of(record, "coverage")["verdict"] == "ok");
  CHECK(record["checks"].size() == 11);
  CHECK(document["records"][1]["checks"].size() == 10);  // the coverage of a device is reported once

  const auto one = ctl(daemon, {"audit", kTinyKernel, "--problem", text_of(tiny_problem(3)), "--verbose"});
  CHECK_THAT(one.out, Contains("K=3") && !Contains("K=2") && Contains("FAIL  measurement") &&
                          Contains("FAIL  reference") && Contains("ok    today"));
}

TEST_CASE("audit prints a line for each record and only the checks that failed") {
  TinyDaemon daemon{{.problems = {tiny_problem(2)}}};
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))}).exit_code == 0);
  const auto audited = ctl(daemon, {"audit", kTinyKernel});
  CHECK_THAT(audited.out, Catch::StartsWith("replayed: FAIL  scale " + text_of(tiny_problem(2)) + " on ") &&
                              Contains(" us, 2 of 11 checks failed, ") && Contains("  FAIL  measurement") &&
                              !Contains("ok    ") && !Contains("note  ") &&
                              Catch::EndsWith("1 record, 2 checks failed; --verbose prints every check\n"));
}

TEST_CASE("audit leaves out what came with cubind unless it is asked for") {
  TinyDaemon daemon{{.problems = {tiny_problem(2)}}};
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))}).exit_code == 0);
  import_shipped(daemon);
  const auto own = ctl(daemon, {"audit", kTinyKernel});
  CHECK_THAT(own.out, Contains("\n1 record, ") && !Contains("nvidia-h200"));
  CHECK(own.err == "left out 1 record that came with cubind: --shipped includes it\n");
  const auto all = ctl(daemon, {"audit", kTinyKernel, "--shipped"});
  CHECK_THAT(all.out, Contains("\n2 records, ") && Contains("it is shipped, not measured here"));
  CHECK(all.err.empty());
}

}  // namespace cubind::test
