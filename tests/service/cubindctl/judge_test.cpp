// cubindctl judge against a real daemon, whose table has what the source would do.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/signing_keys.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

TableTrial judged_trial(Table& table, int baseline, double time_us) {
  TableTrial trial = trial_of(table, tiny_problem(2), {{{"THREADS", 128}, {"VECTOR", 1}}});
  trial.context.kernel = "judged_scale";
  trial.context.trial = Digest::of("judged " + std::to_string(baseline));
  trial.context.configuration.values.push_back({"CUBIND_BASELINE", baseline});
  trial.screening = {test::block_of({time_us, time_us, time_us})};
  trial.finals = {test::block_of(std::vector<double>(32, time_us))};
  trial.verifications.clear();
  return trial;
}

struct JudgeFixture {
  explicit JudgeFixture(const std::function<void(TableTrial&)>& edit = {})
      : daemon({.problems = {tiny_problem(2)}, .edit_table = [&](Table& table) {
                  TableTrial source = judged_trial(table, 0, 10.0);
                  if (edit) {
                    edit(source);
                  }
                  table.trials.push_back(judged_trial(table, 1, 20.0));
                  table.trials.push_back(std::move(source));
                }}) {
    std::string source = read_file(daemon.kernels() / "scale.cu");
    source.replace(source.find("* T(K)"), 6, "* factor(K) + 0.0f");  // other code
    write_file_atomic(file("mine.cuh"), "__device__ float factor(int k) { return k; }\n");
    write_file_atomic(file("mine.cu"), "#include \"mine.cuh\"\n" + source);
    write_file_atomic(file("acme.key"), kSecretKey);
    write_file_atomic(file("trust"), trust_line());
  }

  std::string file(const std::string& name) const { return (daemon.folder() / name).string(); }
  ProgramResult judge(const std::string& task, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"judge", task, file("mine.cu"), "--header", file("mine.cuh"), "--problem",
                               text_of(tiny_problem(2))});
    return ctl(daemon, std::move(more));
  }

  TinyDaemon daemon;
};

TEST_CASE("a verdict is printed, written and signed, and verified without the daemon") {
  JudgeFixture fixture;
  const std::string out = fixture.file("verdict.json");
  const ProgramResult judged = fixture.judge("scale", {"--out", out, "--key", fixture.file("acme.key")});
  INFO(judged.err);
  REQUIRE(judged.exit_code == 0);
  CHECK(judged.out ==
        "correct: the baseline takes 2 (2 to 2) times as long\n"
        "  N=4096,K=2,T=f32: correct, 2 (2 to 2)\n");
  const Json verdict = Json::parse(read_file(out));
  CHECK(verdict["problems"][0]["source"]["verifications"].size() == 2);
  CHECK(verdict["problems"][0]["baseline"]["configuration"] == "THREADS=128,VECTOR=1");
  CHECK(verdict["source"].size() == 2);

  const auto verify = [&] {
    return ctl("unix:///nowhere", {"judge", "--verify", out, "--trust", fixture.file("trust"), "--html",
                                   fixture.file("verdict.html")});
  };
  const ProgramResult verified = verify();
  INFO(verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Contains("signed by acme"));
  CHECK_THAT(read_file(fixture.file("verdict.html")), Contains("\"format\":\"cubind-verdict/1\""));
  write_file_atomic(out, read_file(out) + " ");
  CHECK_THAT(verify().err, Contains("was changed after acme signed it"));
}

TEST_CASE("a verdict that cannot be written is printed") {
  const ProgramResult judged = JudgeFixture().judge("scale", {"--out", "/nowhere/verdict.json"});
  CHECK(judged.exit_code == 4);
  CHECK_THAT(judged.out, Catch::StartsWith("correct"));
}

TEST_CASE("what cannot be judged or signed is refused before it is measured") {
  JudgeFixture fixture;
  CHECK_THAT(fixture.judge("scale", {"--out", fixture.file("out"), "--key", fixture.file("none.key")}).err,
             Contains("none.key: cannot open"));
  CHECK_THAT(fixture.judge("scale", {"--header", fixture.file("\xff.cuh")}).err, Contains("is not UTF-8"));
  write_file_atomic(fixture.file("mine.cuh"), std::string("\0", 1));
  const ProgramResult judged = fixture.judge("scale");
  CHECK(judged.exit_code == 2);
  CHECK_THAT(judged.err, Contains("mine.cuh: holds a zero byte"));
  CHECK(ctl_json(fixture.daemon, {"jobs", "--all"})["jobs"].empty());
}

TEST_CASE("a spec that the daemon does not have is a task") {
  JudgeFixture fixture;
  const std::string out = fixture.file("verdict.json");
  const ProgramResult judged =
      fixture.judge((fixture.daemon.kernels() / "scale.json").string(), {"--out", out});
  INFO(judged.err);
  CHECK(judged.exit_code == 0);
  CHECK(Json::parse(read_file(out))["task"]["from"] == "caller");
}

TEST_CASE("a source that is right at its first launch and wrong at a later one is wrong") {
  JudgeFixture fixture([](TableTrial& source) {
    source.outcome = Outcome::WrongResult;
    for (const bool after_timing : {false, true}) {
      VerificationResult& one = source.verifications.emplace_back();
      to_wire(tiny_problem(2), *one.mutable_problem());
      one.set_after_timing(after_timing);
      one.set_outcome(after_timing ? v1::WRONG_RESULT : v1::CORRECT);
      one.set_worst_excess(after_timing ? 7 : 0.5);
    }
  });
  const ProgramResult judged = fixture.judge("scale");
  INFO(judged.err);
  CHECK(judged.exit_code == 1);
  CHECK_THAT(judged.out,
             Catch::StartsWith("wrong") && Contains("right at its first launch, wrong at a later one"));
}

TEST_CASE("an output that would mostly pass as 0 is noted behind the outcome") {
  JudgeFixture fixture([](TableTrial& source) {
    VerificationResult& one = source.verifications.emplace_back();
    to_wire(tiny_problem(2), *one.mutable_problem());
    one.set_after_timing(true);
    one.set_outcome(v1::CORRECT);
    one.set_blank_share(0.75);
    one.set_blank_output("y");
  });
  const ProgramResult judged = fixture.judge("scale");
  INFO(judged.err);
  CHECK(judged.exit_code == 0);
  CHECK_THAT(judged.out, Catch::StartsWith("correct") && Contains("2 (2 to 2); 75 % of y would pass as 0"));
}

TEST_CASE("a source that is launched with no threads is refused") {
  JudgeFixture fixture;
  const ProgramResult judged = fixture.judge("scale", {"--grid", "0"});
  CHECK(judged.exit_code == 1);
  CHECK_THAT(judged.out, Catch::StartsWith("refused") && Contains("its launch is not valid"));
}

TEST_CASE("a source that does not compile is refused with the compiler's words") {
  JudgeFixture fixture;
  write_file_atomic(fixture.file("mine.cuh"), "__device__ float other(int k);\n");
  const ProgramResult judged = fixture.judge("scale");
  CHECK(judged.exit_code == 1);
  CHECK_THAT(judged.out, Catch::StartsWith("refused") && Contains("factor"));
}

}  // namespace
}  // namespace cubind::test
