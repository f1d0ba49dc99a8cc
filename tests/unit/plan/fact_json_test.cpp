#include "plan/facts/fact_json.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/facts.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a fact is printed by the numbers of its fields, conditions in the same object") {
  SampleBlock block = block_of({2.5, 2.75}, 2.5);
  block.mutable_conditions()->set_memory_mhz(3201);
  block.mutable_conditions()->set_temperature_c(61);  // above kLastPrinted
  block.set_timer("cupti");
  CHECK(to_json(block).dump() ==
        R"({"samples_us":[2.5,2.75],"sm_mhz":1980,"memory_mhz":3201,"judged_against_us":2.5})");
}

TEST_CASE("an optional field that is absent or zero is not printed and others are") {
  SampleBlock block = block_of({2.5});
  block.mutable_conditions()->set_throttled(false);
  CHECK(to_json(block).dump() == R"({"samples_us":[2.5],"sm_mhz":1980})");
  CHECK(to_json(Conditions()).dump() == R"({"sm_mhz":0})");
}

TEST_CASE("digests and enumerators and problems print as everywhere") {
  VerificationSummary summary;
  summary.set_digest(std::string(2, '\x1f'));
  CHECK(to_json(summary)["digest"] == "1f1f");
  const Problem problem{{{"N", 4096}}, {}, {}, ""};
  const OrderedJson json = to_json(comparison_of(problem, 17, v1::WRONG_RESULT));
  CHECK(json["outcome"] == "wrong_result");
  CHECK(json["problem"]["dims"]["N"] == 4096);
}

TEST_CASE("what is printed is read back and a value of another type or range is refused at its place") {
  Timing timing;
  timing.set_median_us(2.5);
  timing.set_low_us(2.5);
  timing.set_high_us(2.75);
  timing.set_samples(12);
  timing.set_timer("cupti");
  const OrderedJson printed = to_json(timing);
  CHECK(printed["time_us"] == 2.5);
  Timing read;
  read_fields(JsonNode(printed, "t.json"), read);
  CHECK(read == timing);
  const OrderedJson forged{{"samples", -1}};
  CHECK_THROWS_WITH(read_fields(JsonNode(forged, "t.json"), read), Catch::Contains("t.json /samples"));
  const OrderedJson endless{{"time_us", 1e308}};
  CHECK_THROWS_WITH(read_fields(JsonNode(endless, "t.json"), read), Catch::Contains("t.json /time_us"));
}

}  // namespace
}  // namespace cubind::test
