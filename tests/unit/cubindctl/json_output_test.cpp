#include "client/cubindctl/terminal/json_output.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "client/cubindctl/answers/answer_json.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "tests/fakes/sample_reply.hpp"

namespace cubind::ctl {
namespace {

Answer sample_answer() {
  const Problem problem{{{"N", 1024}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""};
  return Answer(std::make_shared<v1::GetVariantReply>(test::sample_reply(problem, "cubin")),
                std::make_shared<const std::string>("cubin"));
}

// Counts, versions and coordinates have no unit; times, clocks, sizes and ratios say theirs.
bool names_its_unit(const std::string& key) {
  static const std::set<std::string> kCounts = {"samples",
                                                "registers",
                                                "records",
                                                "shipped_records",
                                                "artifacts",
                                                "kernels",
                                                "agents",
                                                "waiters",
                                                "number",
                                                "configurations",
                                                "configurations_done",
                                                "valid_configurations",
                                                "nvrtc_calls",
                                                "jobs_queued",
                                                "jobs_running",
                                                "hits",
                                                "answers",
                                                "timed",
                                                "misses",
                                                "misses_wanted",
                                                "damaged_rows",
                                                "cubins_evicted",
                                                "driver_cuda",
                                                "pci_device_id",
                                                "sm_count",
                                                "lower",
                                                "upper",
                                                "value"};
  static const std::vector<std::string> kUnits = {"_us", "_ms", "_mhz", "_mw", "_bytes", "_bits", "_ratio"};
  const auto ends = [&](const std::string& unit) { return key.ends_with(unit); };
  return kCounts.contains(key) || std::ranges::any_of(kUnits, ends);
}

// Values of dims, tunables, outcomes and grids stand under names of the user's own.
void check_units(const OutputJson& json, const std::string& key = "") {
  static const std::set<std::string> kOwnNames = {
      "problem",  "measured_problem", "configuration", "default", "winner",
      "problems", "own_records",      "outcomes",      "grid",    "block"};
  if (kOwnNames.contains(key)) {
    return;
  }
  if (json.is_number()) {
    INFO(key);
    CHECK(names_its_unit(key));
  }
  for (const auto& [name, value] : json.items()) {
    if (json.is_structured()) {
      check_units(value, json.is_array() ? key : name);
    }
  }
}

v1::DeviceClass device() {
  v1::DeviceClass device;
  device.set_label("nvidia-h200");
  device.mutable_facts()->set_memory_bytes(1);
  device.set_offered(true);
  return device;
}

}  // namespace

TEST_CASE("every number in JSON names its unit") {
  check_units(json_of(sample_answer()));
  check_units(json_of(device()));
  v1::TuneEvent event;
  event.mutable_job()->set_elapsed_ms(3);
  event.set_best_us(2);
  *event.mutable_provenance() = sample_answer().reply().provenance();
  *event.mutable_winner() = sample_answer().reply().configuration();
  check_units(json_of(event));
  v1::GetStatusReply status;
  *status.add_devices() = device();
  check_units(json_of(status));
  v1::CheckKernelReply check;
  *check.add_compiled() = sample_answer().reply().artifact();
  check_units(json_of(check));
}

TEST_CASE("an answer as JSON is enough to launch its cubin") {
  const OutputJson json = json_of(sample_answer());
  CHECK(json["problem"].dump() == R"({"N":1024,"D":4096,"T":"f16"})");
  const OutputJson& launch = json["launches"][1];
  CHECK(launch["entry_symbol"] == "_Z6finish");
  CHECK(launch["grid"].dump() == "[1024,2,1]");
  CHECK(launch["block"].dump() == "[256,1,1]");
  CHECK(launch["shared_bytes"] == 16384);
  CHECK(launch["parameters"][0]["kind"] == "buffer");
  CHECK(launch["parameters"][2].dump() == R"({"name":"D","kind":"scalar","type":"i32","value":4096})");
}

TEST_CASE("a scalar of the caller has no value") {
  const OutputJson alpha = json_of(sample_answer())["launches"][0]["parameters"][3];
  CHECK(alpha.dump() == R"({"name":"alpha","kind":"scalar","type":"f32"})");
}

TEST_CASE("match and evidence and where it comes from are shown") {
  const OutputJson json = json_of(sample_answer());
  CHECK(json["match"] == "exact");
  CHECK(json["provenance"]["evidence"] == "measured");
  CHECK(json["provenance"]["time_us"] == 24.1);
  CHECK(json["provenance"]["sm_mhz"] == 1980);
  CHECK(json["artifact"]["size_bytes"] == 5);
}

TEST_CASE("digests and store ids are printed in hex") {
  v1::Generation generation;
  generation.set_store_id(std::string("\xd4\x00\x0a", 3));
  CHECK(json_of(generation)["store_id"] == "d4000a");
}

TEST_CASE("where nothing was measured no measurement is shown") {
  v1::Provenance provenance;
  provenance.set_evidence(v1::NONE);
  CHECK_FALSE(json_of(provenance).contains("time_us"));
}

}  // namespace cubind::ctl
