#include "client/cubindctl/report/report_data.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/report/report_page.hpp"
#include "tests/support/reported.hpp"

namespace cubind::ctl {
namespace {

using Catch::Contains;

using test::Reported;

TEST_CASE_METHOD(Reported, "a report has every record with its gain and the interval of the finals") {
  const OutputJson record = data()["records"].at(0);
  CHECK(record["gain_over_default"] == 1.25);
  CHECK(record["gain_low"] > 1.2);
  CHECK(record["gain_high"] < 1.3);
  CHECK(record["configuration"] == OutputJson({{"THREADS", 256}, {"VECTOR", 4}}));
  CHECK(record["device"] == data()["devices"].at(0)["label"]);
}

TEST_CASE_METHOD(Reported, "a gain that the store does not know is left out") {
  input.table.records[0].timing.set_gain_over_default(0);
  trial(128, 1).finals.clear();
  const OutputJson record = data()["records"].at(0);
  CHECK_FALSE(record.contains("gain_over_default"));
  CHECK_FALSE(record.contains("gain_low"));
}

TEST_CASE_METHOD(Reported, "a tuning shows every timed trial and a problem without a record too") {
  const OutputJson tunings = data()["tunings"];
  REQUIRE(tunings.size() == 2);
  CHECK(tunings[0]["best"].size() == test::kTinyConfigurations - 1);
  CHECK(tunings[1]["best"].size() == test::kTinyConfigurations);
  CHECK_FALSE(tunings[1]["winner"].contains("configuration"));
}

TEST_CASE_METHOD(Reported, "records of other numerics show the same trials as tunings of their own") {
  input.table.records.push_back(input.table.records[0]);
  input.table.records[1].numerics = "reproducible";
  const OutputJson tunings = data()["tunings"];
  REQUIRE(tunings.size() == 3);
  CHECK(tunings[1]["numerics"] == "reproducible");
  CHECK(tunings[1]["best"].size() == tunings[0]["best"].size());
}

TEST_CASE_METHOD(Reported, "a failed trial comes with its message and the command that tries it again") {
  trial(32, 4).header.set_detail(std::string(kMostMessageBytes, 'x') + "the end");
  const OutputJson failed = data()["tunings"][0]["failed"].at(0);
  CHECK(failed["outcome"] == "runtime");
  CHECK(failed["message"] == std::string(kMostMessageBytes, 'x'));
  CHECK_THAT(failed["command"].get<std::string>(),
             Contains("cubindctl forget scale --problem N=4096,K=2,T=f32 --device ") &&
                 Contains("--configuration THREADS=32,VECTOR=4 && cubindctl tune scale"));
}

TEST_CASE_METHOD(Reported, "the report of a job has its question alone") {
  input.table.records.push_back(input.table.records[0]);
  input.table.records[1].name_space = "elsewhere";
  input.question = question();
  CHECK(data()["records"].size() == 1);
  REQUIRE(data()["tunings"].size() == 1);
  CHECK(data()["tunings"][0]["problem"]["K"] == 2);
  input.question->name_space = "nowhere";  // its job has failed: no record, and the same trials
  CHECK(data()["records"].empty());
  CHECK(data()["tunings"].size() == 1);
}

TEST_CASE_METHOD(Reported, "more trials than a page holds are left out with a remark") {
  input.table.trials.resize(kMostReportedTrials + 1, input.table.trials.back());
  const OutputJson report = data();
  CHECK(report["tunings"].empty());
  CHECK(report["records"].size() == 1);
  CHECK_THAT(report["remarks"].at(0).get<std::string>(), Contains("20001") && Contains("report --job ID"));
  input.question = question();  // has only a few of them
  CHECK(data()["tunings"].size() == 1);
}

TEST_CASE_METHOD(Reported, "without the spec the records are shown and the trials are not") {
  input.spec = nullptr;
  CHECK(data()["records"].size() == 1);
  CHECK(data()["tunings"].empty());
}

TEST_CASE_METHOD(Reported, "a failed job comes with the command that repeats it") {
  v1::Job& job = input.jobs.emplace_back();
  job.set_kernel("scale");
  job.set_device("gpu");
  job.set_state(v1::Job::FAILED);
  job.set_error("no reference");
  job.mutable_policy()->set_warm_l2(true);
  CHECK(data()["jobs"][0]["command"] == "cubindctl tune scale --problem '' --device gpu --warm-l2");
  job.set_state(v1::Job::DONE);
  CHECK_FALSE(data()["jobs"][0].contains("command"));
}

TEST_CASE_METHOD(Reported, "a command has the terms of its question") {
  ExplainedQuestion asked = question();
  asked.policy = "warm,graph";
  asked.numerics = "invariant:N";
  asked.name_space = "a b";
  CHECK_THAT(tune_command(asked, "gpu", true),
             Catch::EndsWith("--device gpu --warm-l2 --graph --invariant N --namespace 'a b' --retune"));
}

TEST_CASE("a name is one word to a shell whatever it holds") {
  CHECK(shell_word("N=1,T=bf16") == "N=1,T=bf16");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("$(x) 'y'") == R"('$(x) '\''y'\''')");
}

TEST_CASE_METHOD(Reported, "a page holds its data without markup and allows its own script alone") {
  input.kernel = "</script><img src=x onerror=alert(1)>@script@";
  const std::string page = report_page(data());
  CHECK_THAT(page, !Contains("<img") && !Contains("@policy@") && !Contains("@data@"));
  CHECK_THAT(page, Contains("\\u003c/script>\\u003cimg src=x onerror=alert(1)>@script@"));
  CHECK_THAT(page, Contains("default-src 'none'") && Contains("script-src 'sha256-"));
}

}  // namespace
}  // namespace cubind::ctl
