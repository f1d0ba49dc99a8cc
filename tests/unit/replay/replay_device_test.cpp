#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/support/faulty_device.hpp"
#include "tests/unit/table/example_table.hpp"
#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/replay_table.hpp"

namespace cubind::worker {
namespace {

// The example table, with the memory's clock.
Table recorded_table() {
  Table table = example_table();
  for (TableTrial& trial : table.trials) {
    for (SampleBlock& block : trial.finals) {
      block.mutable_conditions()->set_memory_mhz(3201);
    }
  }
  return table;
}

// A replay device with the example table loaded: one setup, one loaded trial.
class Fixture {
 public:
  explicit Fixture(const std::string& faults = "", const Table& table = recorded_table()) {
    write_file_atomic(dir.path() / "table.json", print_table(table));
    const std::vector<std::string> arguments = {"--replay", (dir.path() / "table.json").string()};
    if (faults.empty()) {
      device = make_replay_device(arguments);
    } else {
      write_file_atomic(dir.path() / "faults.json", faults);
      device = test::make_faulty_device(arguments, (dir.path() / "faults.json").string());
    }
    v1::PrepareProblem prepare;
    prepare.set_kernel("scale");
    to_wire(example_problem(), *prepare.mutable_problem());
    prepared = device->prepare(prepare);
  }

  v1::DeviceReply load(std::int64_t threads) {
    v1::LoadTrial load;
    load.set_trial(1);
    to_wire(Configuration{{{"THREADS", threads}}}, *load.mutable_configuration());
    load.set_trial_key(std::string(32, 'k'));
    load.add_entry_symbols("scale");
    return device->load(load);
  }

  v1::DeviceReply measure(v1::SampleBlock::Stage stage, std::uint32_t first, std::uint32_t samples) {
    v1::MeasureTrials request;
    request.set_stage(stage);
    v1::MeasureTrials::Item& item = *request.add_items();
    item.set_trial(1);
    item.set_first_sample(first);
    item.set_samples(samples);
    return device->measure(request);
  }

  v1::DeviceReply verify(bool after_timing = false) {
    v1::VerifyTrial request;
    request.set_trial(1);
    request.set_after_timing(after_timing);
    return device->verify(request);
  }

  TempDir dir;
  std::unique_ptr<DeviceBackend> device;
  v1::DeviceReply prepared;
};

TEST_CASE("a replay device has a class of its own named after its table") {
  Fixture fixture;
  const v1::DeviceReply reply = fixture.device->open({});
  CHECK(reply.info().facts().replay_table() == table_digest(recorded_table()).hex());
  CHECK(reply.info().timer() == "replay");
}

TEST_CASE("recorded samples are played in order") {
  Fixture fixture;
  REQUIRE(fixture.load(128).outcome() == v1::CORRECT);
  const v1::DeviceReply reply = fixture.measure(v1::SampleBlock::SCREEN, 0, 3);
  REQUIRE(reply.measured_size() == 1);
  CHECK(reply.measured(0).samples_us(0) == 2.5);
  CHECK(reply.measured(0).samples_us(2) == 2.75);
}

TEST_CASE("played samples have the clocks at which they were recorded, as a roofline needs them") {
  Fixture fixture;
  REQUIRE(fixture.load(128).outcome() == v1::CORRECT);
  const v1::Conditions played = fixture.measure(v1::SampleBlock::SCREEN, 0, 1).measured(0).conditions();
  CHECK(played.sm_mhz() == 1980);
  CHECK(played.memory_mhz() == 3201);
}

TEST_CASE("sample k is a function of table and trial and k alone") {
  Fixture fixture, other;
  fixture.load(128);
  other.load(128);
  const auto whole = fixture.measure(v1::SampleBlock::FINAL, 0, 40).measured(0).samples_us();
  const auto tail = other.measure(v1::SampleBlock::FINAL, 25, 15).measured(0).samples_us();
  for (int i = 0; i < 15; ++i) {
    CHECK(tail[i] == whole[25 + i]);
  }
}

TEST_CASE("a configuration that was not recorded does not launch and the reply names it") {
  Fixture fixture;
  const v1::DeviceReply reply = fixture.load(96);
  CHECK(reply.outcome() == v1::LAUNCH);
  CHECK(reply.detail() == "not recorded: scale at N=4096,T=f32 with THREADS=96");
}

TEST_CASE("a problem that was not recorded is refused with what the table holds of its kernel") {
  Fixture fixture;
  v1::PrepareProblem prepare;
  prepare.set_kernel("scale");
  to_wire(parse_problem("N=8192,T=f32"), *prepare.mutable_problem());
  fixture.device->prepare(prepare);
  CHECK_THROWS_WITH(fixture.load(128), Catch::EndsWith("table.json: the replayed table holds no recording of "
                                                       "scale at N=8192,T=f32; of scale it holds "
                                                       "N=4096,T=f32"));
}

TEST_CASE("of many recorded problems the refusal names a handful and counts the others") {
  Table table = example_table();
  for (std::int64_t n = 1; n <= 12; ++n) {
    table.trials.push_back(table.trials.front());
    table.trials.back().context.problem.dims = {{"N", n}};
  }
  const ReplayTable replay(table, "t.json");
  CHECK_THROWS_WITH(
      replay.require("scale", parse_problem("N=13,T=f32")),
      Catch::EndsWith("it holds N=4096,T=f32; N=1,T=f32; N=2,T=f32; N=3,T=f32; N=4,T=f32 and 8 more"));
  CHECK_THROWS_WITH(replay.require("other", parse_problem("N=1,T=f32")),
                    Catch::EndsWith("it holds no trial of that kernel, but of scale"));
}

TEST_CASE("a recorded wrong result fails verification") {
  Fixture fixture;
  REQUIRE(fixture.load(256).outcome() == v1::CORRECT);
  CHECK(fixture.verify().verification().outcome() == v1::WRONG_RESULT);
}

TEST_CASE("a trial that was recorded as wrong after timing alone is right before") {
  Table table = recorded_table();
  for (TableTrial& trial : table.trials) {
    if (trial.outcome == Outcome::WrongResult) {
      for (const bool after_timing : {false, true}) {
        VerificationResult& one = trial.verifications.emplace_back();
        to_wire(example_problem(), *one.mutable_problem());
        one.set_after_timing(after_timing);
        one.set_outcome(after_timing ? v1::WRONG_RESULT : v1::CORRECT);
        one.set_worst_excess(after_timing ? 7 : 0.5);
      }
    }
  }
  Fixture fixture("", table);
  REQUIRE(fixture.load(256).outcome() == v1::CORRECT);
  CHECK(fixture.verify().outcome() == v1::CORRECT);
  CHECK(fixture.verify(true).outcome() == v1::WRONG_RESULT);
  CHECK_THAT(fixture.verify(true).verification().detail(), Catch::Contains("y[4095] is 0"));
}

TEST_CASE("the shipped worker takes no faults") {
  CHECK_THROWS_WITH(make_replay_device({"--replay", "table.json", "--faults", "faults.json"}),
                    Catch::Contains("expected --replay TABLE"));
}

TEST_CASE("an injected sticky fault ends the device with its reply") {
  Fixture fixture(
      R"({"faults": [{"at": "verify", "fault": "illegal_address", "configuration": {"THREADS": 128}}]})");
  fixture.load(128);
  const v1::DeviceReply reply = fixture.verify();
  CHECK(reply.outcome() == v1::RUNTIME);
  CHECK(reply.sticky());
}

TEST_CASE("a fault with a count is over after it also for the next process") {
  Fixture fixture(R"({"faults": [{"at": "measure", "fault": "out_of_memory", "times": 1}]})");
  fixture.load(128);
  CHECK(fixture.measure(v1::SampleBlock::SCREEN, 0, 1).outcome() == v1::OUT_OF_MEMORY);
  CHECK(fixture.measure(v1::SampleBlock::SCREEN, 0, 1).outcome() == v1::CORRECT);
}

TEST_CASE("a fault of other configurations or problems is not ours") {
  Fixture fixture(R"({"faults": [{"at": "measure", "fault": "launch", "configuration": {"THREADS": 512}},
                                 {"at": "measure", "fault": "launch", "problem": {"N": 1}}]})");
  fixture.load(128);
  CHECK(fixture.measure(v1::SampleBlock::SCREEN, 0, 1).outcome() == v1::CORRECT);
}

TEST_CASE("a fault file with an unknown fault is refused at its place") {
  REQUIRE_THROWS_WITH(Fixture(R"({"faults": [{"at": "measure", "fault": "explode"}]})"),
                      Catch::Contains("faults.json /faults/0/fault"));
}

TEST_CASE("measured blocks are logged") {
  TempDir dir;
  const std::string log = (dir.path() / "log").string();
  Fixture fixture(R"({"log": ")" + log + R"("})");
  fixture.load(128);
  fixture.measure(v1::SampleBlock::SCREEN, 1, 2);
  CHECK(read_file(log).ends_with(" SCREEN 1 2 " + std::to_string(::getpid()) + "\n"));
}

TEST_CASE("a table of several devices or without trials is not played") {
  Table table = example_table();
  table.trials.clear();
  CHECK_THROWS_WITH(ReplayTable(table, "t.json"), Catch::Contains("nothing to replay"));
}

}  // namespace
}  // namespace cubind::worker
