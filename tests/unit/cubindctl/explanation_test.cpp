#include "client/cubindctl/answers/explanation.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "client/cubindctl/answers/explanation_output.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/paths.hpp"

namespace cubind::ctl {
namespace {

using Catch::Contains;

// Of the recorded RMSNorm table every row of one problem, and the last rows of another.
std::string rows_of_a_problem() {
  std::istringstream recorded(read_file(test::source_dir() / "tests/golden/replay/rmsnorm.json"));
  std::string rows;
  for (std::string line; std::getline(recorded, line);) {
    const bool is_last = !line.ends_with(',');
    if (!line.starts_with(R"({"kernel")") || line.find(R"("N":16384)") != std::string::npos || is_last) {
      rows += line + "\n";
    }
  }
  return rows;
}

struct Recorded {
  Recorded() {
    table = read_table(rows_of_a_problem(), "rmsnorm.json");
    spec = load_kernel_spec((test::source_dir() / "variants/rmsnorm/rmsnorm_forward.json").string());
    question.kernel = "rmsnorm_forward";
    question.policy = table.records.front().context.policy;
    set_memory_mhz(0);
    question.problem = spec->canonicalize(parse_problem("N=16384,D=4096,T=bf16"), "problem");
  }

  void set_memory_mhz(std::uint32_t clock) {
    for (TableTrial& trial : table.trials) {
      for (auto* blocks : {&trial.screening, &trial.finals}) {
        for (SampleBlock& block : *blocks) {
          block.mutable_conditions()->set_memory_mhz(clock);
        }
      }
    }
  }
  Explanation explained() const { return explain(table, *spec, question); }
  TableTrial& slowest() {
    const Explanation now = explained();
    const Configuration configuration = now.timed.back().trial->context.configuration;
    return *std::ranges::find_if(table.trials, [&](const TableTrial& trial) {
      return trial.context.problem == question.problem && trial.context.configuration == configuration;
    });
  }

  Table table;
  std::shared_ptr<const KernelSpec> spec;
  ExplainedQuestion question;
};

TEST_CASE_METHOD(Recorded, "the trials of the problem alone are explained with the fastest first") {
  const Explanation explanation = explained();
  CHECK(explanation.trials == 158);
  CHECK(explanation.timed.size() == 158);
  CHECK(std::ranges::is_sorted(explanation.timed, {}, &ExplainedTrial::time_us));
  CHECK(explanation.device == "nvidia-h200");
  REQUIRE(explanation.record != nullptr);
  CHECK(std::ranges::count_if(explanation.timed, [](const auto& one) { return one.is_winner; }) == 1);
  CHECK(std::ranges::count_if(explanation.timed, [](const auto& one) { return one.is_default; }) == 1);
}

TEST_CASE_METHOD(Recorded, "the winner has the time of its record and what was only screened says so") {
  for (TableRecord& record : table.records) {
    record.timing.set_median_us(12.345);
  }
  const Explanation explanation = explained();
  const auto winner = std::ranges::find(explanation.timed, true, &ExplainedTrial::is_winner);
  CHECK(winner->time_us == 12.345);
  CHECK(winner->samples == explanation.record->timing.samples());
  CHECK_FALSE(winner->screened);
  CHECK(std::ranges::count(explanation.timed, false, &ExplainedTrial::screened) ==
        static_cast<std::ptrdiff_t>(explanation.finalists.size()));
  std::ostringstream out;
  print(out, explanation, question, 0);
  CHECK_THAT(out.str(), Contains("  12.35 us (") && Contains("\n    12.35 ") && Contains("  screened  "));
}

TEST_CASE_METHOD(Recorded, "a finalist's time is what a record would say of its rounds") {
  const Explanation explanation = explained();
  for (const ExplainedFinalist& finalist : explanation.finalists) {
    const ExplainedTrial& one = explanation.timed[finalist.trial];
    const RoundTimes rounds = rounds_of(*one.trial, {});
    CHECK(one.time_us == Approx(record_time_us(rounds, {{}, one.trial->tick_us, {}})));
  }
}

TEST_CASE_METHOD(Recorded, "a trial shows its resources and the rates of the spec's work") {
  const ExplainedTrial best = explained().timed.front();
  CHECK(best.registers > 0);
  REQUIRE(best.occupancy);
  CHECK(*best.occupancy > 0);
  CHECK(*best.occupancy <= 1);
  CHECK(*best.bytes_per_second * best.time_us * 1e-6 == Approx(2.0 * 16384 * 4096 * 2 + 4096 * 2));
  CHECK(*best.flops_per_second * best.time_us * 1e-6 == Approx(4.0 * 16384 * 4096));
}

TEST_CASE_METHOD(Recorded, "the document has the work and the peaks that are known") {
  const OutputJson document = json_of(explained(), question);
  CHECK(document["work"] ==
        OutputJson({{"bytes", 2 * 16384 * 4096 * 2 + 4096 * 2}, {"flops", 4 * 16384 * 4096}}));
  CHECK(document["peak"].contains("flops_per_second"));
  CHECK_FALSE(document["peak"].contains("bytes_per_second"));
}

TEST_CASE_METHOD(Recorded, "the winner's comparisons with libraries are printed") {
  CHECK_FALSE(json_of(explained(), question)["winner"].contains("over_library"));
  for (TableRecord& record : table.records) {
    record.over_library = {test::gain_over("torch 2.13.0", 1.31, 1.29, 1.33, 40)};
  }
  std::ostringstream out;
  print(out, explained(), question, 0);
  CHECK_THAT(out.str(), Contains("\n  over library: 1.31 x (1.29 to 1.33), torch 2.13.0, reported\n"));
  const OutputJson told = json_of(explained(), question)["winner"]["over_library"];
  CHECK(told ==
        OutputJson::parse(R"([{"library": "torch 2.13.0", "gain": 1.31, "gain_low": 1.29, "gain_high": 1.33,)"
                          R"("samples": 40}])"));
}

TEST_CASE_METHOD(Recorded, "a trial tells the best that it was judged against when it was first screened") {
  TableTrial& one = slowest();
  one.screening.resize(2, one.screening.front());
  one.screening[0].set_judged_against_us(70);
  one.screening[1].set_judged_against_us(60);
  CHECK(explained().timed.back().judged_against_us == 70);
}

TEST_CASE_METHOD(Recorded, "trials of two device classes are explained for the one that is asked") {
  TableDevice& other = table.devices.emplace_back(table.devices.front());
  other.device_class = Digest::of("other");
  other.label = "other";
  table.trials.push_back(slowest());
  table.trials.back().context.device_class = other.device_class;
  CHECK_THROWS_WITH(explained(), Contains("name one by --device"));
  question.device_class = other.device_class;
  CHECK(explained().trials == 1);
  CHECK(explained().device == "other");
}

TEST_CASE_METHOD(Recorded, "a trial shows whether it uses the tensor cores") {
  const auto best_row = [&] {
    std::ostringstream out;
    print(out, explained(), question, 0);
    const std::string text = out.str().substr(out.str().find("TENSOR_CORES"));
    const std::size_t row = text.find('\n') + 1;
    return text.substr(row, text.find('\n', row) - row);
  };
  CHECK_FALSE(explained().timed.front().tensor_cores);
  CHECK_THAT(best_row(), Contains("  no  "));
  const TableTrial* best = explained().timed.front().trial;
  const auto same =
      std::ranges::find_if(table.trials, [&](const TableTrial& trial) { return &trial == best; });
  same->resources.back().set_tensor_cores(true);
  CHECK_THAT(best_row(), Contains("  yes  "));
  CHECK(json_of(explained(), question)["best"][0]["tensor_cores"] == true);
}

TEST_CASE_METHOD(Recorded, "the share of the roofline is shown only where the memory's clock is known") {
  const Explanation unknown = explained();
  CHECK_FALSE(unknown.timed.front().roofline_share);
  REQUIRE(unknown.remarks.size() == 1);
  CHECK_THAT(unknown.remarks[0], Contains("clocks of memory and SMs"));
  set_memory_mhz(3201);
  table = read_table(print_table(table), "printed");  // a table keeps it
  const Explanation known = explained();
  CHECK(known.remarks.empty());
  const ExplainedTrial& best = known.timed.front();
  const double peak = 2 * 3201e6 * table.devices.front().facts.memory_bus_bits() / 8;
  CHECK(best.roofline_share.value() == Approx(*best.bytes_per_second / peak));
  CHECK(json_of(known, question)["peak"]["bytes_per_second"] == Approx(peak));
}

TEST_CASE_METHOD(Recorded, "a trial that runs the winner's code names it and is no finalist") {
  const std::size_t finalists = explained().finalists.size();
  const TableTrial winner = *explained().timed.front().trial;
  TableTrial& same = slowest();
  same.measured_as = winner.context.trial;
  same.screening = winner.screening;
  same.finals = winner.finals;
  const Explanation explanation = explained();
  CHECK(explanation.finalists.size() == finalists);
  CHECK(explanation.timed.front().trial->context.trial == winner.context.trial);
  const auto twin =
      std::ranges::find_if(explanation.timed, [&](const ExplainedTrial& one) { return one.trial == &same; });
  REQUIRE(twin != explanation.timed.end());
  CHECK(twin->time_us == explanation.timed.front().time_us);
  REQUIRE(twin->measured_as != nullptr);
  CHECK(twin->measured_as->context.configuration == winner.context.configuration);
  std::ostringstream out;
  print(out, explanation, question, 300);
  CHECK_THAT(out.str(), Contains("code of " + to_string(winner.context.configuration)));
}

TEST_CASE_METHOD(Recorded, "the finalists are compared with the winner in their rounds") {
  const Explanation explanation = explained();
  REQUIRE(explanation.choice);
  REQUIRE(explanation.finalists.size() > 1);
  for (const ExplainedFinalist& finalist : explanation.finalists) {
    REQUIRE(finalist.to_winner);
    const bool is_winner = explanation.timed[finalist.trial].is_winner;
    CHECK((finalist.to_winner->ratio == 1) == is_winner);
    CHECK(finalist.to_winner->interval.low <= finalist.to_winner->ratio);
    CHECK(finalist.to_winner->interval.high >= finalist.to_winner->ratio);
  }
  CHECK_FALSE(reason_of(explanation).empty());
}

// Of two that are alike in all but time, and tie, the earlier place in the space decides.
TEST_CASE_METHOD(Recorded, "finalists that tie are told apart by their places in the space as in the tuner") {
  TableTrial* early = nullptr;
  TableTrial* late = nullptr;
  for (TableTrial& trial : table.trials) {
    if (trial.context.problem == question.problem) {
      trial.finals.clear();
      const std::int64_t cache = trial.context.configuration.value("CACHE").value();
      const auto others = [&](const TableTrial& other) {
        Configuration same = other.context.configuration;
        for (NamedValue& value : same.values) {
          value.value = value.name == "CACHE" ? cache : value.value;
        }
        return same == trial.context.configuration;
      };
      if (cache == 0 && (early == nullptr || late == nullptr)) {
        early = &trial;
      } else if (cache == 2 && early != nullptr && late == nullptr && others(*early)) {
        late = &trial;
      }
    }
  }
  REQUIRE(late != nullptr);
  early->resources = late->resources;
  SampleBlock block = early->screening.front();
  for (int round = 0; round < 20; ++round) {
    block.clear_samples_us();
    block.add_samples_us(100.05);
    early->finals.push_back(block);
    block.clear_samples_us();
    block.add_samples_us(100.0);
    late->finals.push_back(block);
  }
  const Explanation explanation = explained();
  REQUIRE(explanation.choice);
  CHECK(explanation.choice->tied == 2);
  CHECK(explanation.choice->rule == ChoiceRule::Canonical);
  CHECK(explanation.timed[explanation.finalists[explanation.choice->winner].trial].trial == early);
}

TEST_CASE_METHOD(Recorded, "tunables are ranked by what they explain of all trials that were timed") {
  const Explanation explanation = explained();
  REQUIRE(explanation.tunables.size() > 3);
  CHECK(explanation.tunables.front().explained > 0.1);
  CHECK(std::ranges::is_sorted(explanation.tunables, std::ranges::greater{}, &TunableEffect::explained));
}

TEST_CASE_METHOD(Recorded,
                 "a failed configuration is reported with its outcome and message and is not timed") {
  TableTrial& trial = slowest();
  trial.outcome = Outcome::Compile;
  trial.header.set_detail("error: too many resources\nat line 3");
  const Explanation explanation = explained();
  CHECK(explanation.timed.size() == 157);
  REQUIRE(explanation.failed.size() == 1);
  std::ostringstream out;
  print(out, explanation, question, 0);
  CHECK_THAT(out.str(), Contains("158 trials, 157 timed, 1 failed") && Contains("compile") &&
                            Contains("error: too many resources"));
  CHECK(json_of(explanation, question)["failed"][0]["message"] == trial.header.detail());
}

TEST_CASE_METHOD(Recorded, "the text names the winner and why it won and the ten fastest") {
  std::ostringstream out;
  const Explanation explanation = explained();
  print(out, explanation, question, 0);
  CHECK_THAT(out.str(), Contains("winner " + to_string(explanation.record->context.configuration)) &&
                            Contains(reason_of(explanation)) && Contains("by 158 trials"));
  const OutputJson json = json_of(explanation, question);
  CHECK(json["best"].size() == 10);
  CHECK(json["winner"]["time_us"] == explanation.record->timing.median_us());
  CHECK(json["tunables"][0]["explained"] == explanation.tunables[0].explained);
}

TEST_CASE_METHOD(Recorded, "a table without samples tells times but no choice") {
  for (TableTrial& trial : table.trials) {
    trial.time_us = 100;
    trial.samples = 3;
    trial.screening.clear();
    trial.finals.clear();
  }
  const Explanation explanation = explained();
  CHECK(explanation.timed.size() == 158);
  CHECK_FALSE(explanation.choice);
  CHECK(reason_of(explanation).empty());
}

TEST_CASE_METHOD(Recorded, "a problem without trials is not found and two device classes need a choice") {
  ExplainedQuestion other = question;
  other.problem.dims[0].value = 3;
  CHECK_THROWS_WITH(explain(table, *spec, other), Contains("no trials are stored"));
  TableDevice second = table.devices.front();
  second.device_class = Digest::of("another");
  second.label = "nvidia-h100";
  slowest().context.device_class = second.device_class;
  table.devices.push_back(second);
  CHECK_THROWS_WITH(explained(), Contains("nvidia-h100") && Contains("--device"));
}

}  // namespace
}  // namespace cubind::ctl
