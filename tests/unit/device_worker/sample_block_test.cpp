#include "tuner/worker/sample_block.hpp"

#include <catch2/catch.hpp>

#include <deque>

#include "base/error.hpp"

namespace cubind::worker {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint64_t kHardwareThermal = 0x40;

class ScriptedTimer final : public Timer {
 public:
  std::string name() const override { return "scripted"; }
  double tick_us() const override { return 0.5; }
  std::vector<double> measure(const TimedWork&, unsigned samples) override {
    ++blocks;
    return std::vector<double>(samples, sample_us);
  }
  double sample_us = 10;
  int blocks = 0;
};

// A GPU of 1 SM with 4096 dense operations a clock, 1000 MHz, 8 GB/s.
struct BlockFixture {
  BlockFixture() {
    facts.cc_major = 8;
    facts.sm_count = 1;
    facts.memory_bus_bits = 32;
    facts.max_memory_mhz = 1000;
    item.set_trial(7);
    item.set_samples(2);
  }
  // Readings are taken in turns, the last one again and again.
  v1::MeasuredItem measured() {
    const auto next = [&] {
      Conditions reading = readings.front();
      if (readings.size() > 1) {
        readings.pop_front();
      }
      return reading;
    };
    return measured_by({timer, next, throttle, facts});
  }
  v1::MeasuredItem measured_by(const BlockTools& tools) {
    v1::MeasureTrials request;
    *request.add_items() = item;
    const TimedWork work;
    return measure_blocks(tools, problem, {&work, 1}, request, MeasureSettings{}).front();
  }
  static Conditions reading(std::uint32_t sm_mhz, std::uint64_t reasons = 0) {
    Conditions conditions;
    conditions.set_sm_mhz(sm_mhz);
    conditions.set_throttle_reasons(reasons);
    return conditions;
  }

  ScriptedTimer timer;
  std::deque<Conditions> readings = {reading(1000)};
  measure::ThrottlePolicy throttle;
  cuda::DeviceFacts facts;
  v1::PrepareProblem problem;
  v1::MeasureTrials::Item item;
};

TEST_CASE("a block without slowdown is kept with its samples and conditions") {
  BlockFixture f;
  const v1::MeasuredItem item = f.measured();
  CHECK(item.trial() == 7);
  CHECK(item.outcome() == v1::CORRECT);
  CHECK(item.samples_us_size() == 2);
  CHECK(item.conditions().sm_mhz() == 1000);
  CHECK_FALSE(item.conditions().throttled());
  CHECK(f.timer.blocks == 1);
}

TEST_CASE("a block under thermal slowdown is measured again") {
  BlockFixture f;
  f.readings = {f.reading(1000), f.reading(900, kHardwareThermal), f.reading(1000)};
  CHECK_FALSE(f.measured().conditions().throttled());
  CHECK(f.timer.blocks == 2);
}

TEST_CASE("a slowdown that ended within the block makes it measured again") {
  BlockFixture f;
  f.readings = {f.reading(900, kHardwareThermal), f.reading(1000)};
  CHECK_FALSE(f.measured().conditions().throttled());
  CHECK(f.timer.blocks == 2);
}

TEST_CASE("the fourth block in a row under slowdown is kept and marked") {
  BlockFixture f;
  f.readings = {f.reading(900, kHardwareThermal)};
  const v1::MeasuredItem item = f.measured();
  CHECK(f.timer.blocks == 4);
  CHECK(item.conditions().throttled());
  CHECK(item.samples_us_size() == 2);
}

TEST_CASE("a sample below the floor of the flops is refused with both figures") {
  BlockFixture f;
  // 4096 operations a clock: 20 us at 1000 MHz, less a tenth.
  f.problem.set_floor_flops(std::uint64_t{4096} * 20'000);
  f.timer.sample_us = 18.0;
  CHECK_FALSE(f.measured().below_floor());
  f.timer.sample_us = 17.4;  // by more than a tick
  const v1::MeasuredItem item = f.measured();
  CHECK(item.floor_us() == Approx(18.0));
  CHECK(item.below_floor());
  CHECK(item.outcome() == v1::WRONG_RESULT);
  CHECK_THAT(item.detail(), Contains("17.400 us is below the floor of 18.000 us"));
}

TEST_CASE("the floor is that of the higher clock of a block") {
  BlockFixture f;
  f.problem.set_floor_flops(std::uint64_t{4096} * 20'000);
  f.readings = {f.reading(2000), f.reading(1000)};
  CHECK(f.measured().floor_us() == Approx(9.0));
  f.readings = {f.reading(1000), f.reading(2000)};
  CHECK(f.measured().floor_us() == Approx(9.0));
}

TEST_CASE("bytes have a floor where the L2 is cold and none where it is warm") {
  BlockFixture f;
  f.problem.set_floor_min_read_bytes(160'000);  // 20 us
  CHECK(f.measured().below_floor());
  f.problem.mutable_policy()->set_warm_l2(true);
  CHECK_FALSE(f.measured().below_floor());
}

TEST_CASE("one sample below the floor refuses the block of them") {
  BlockFixture f;
  f.problem.set_floor_flops(std::uint64_t{4096} * 20'000);
  struct OneShort final : public Timer {
    std::string name() const override { return "scripted"; }
    double tick_us() const override { return 0.5; }
    std::vector<double> measure(const TimedWork&, unsigned) override { return {30, 5, 30}; }
  } timer;
  const BlockTools tools{timer, [&] { return f.reading(1000); }, f.throttle, f.facts};
  CHECK(f.measured_by(tools).below_floor());
}

TEST_CASE("several items have one block each and equally many samples") {
  BlockFixture f;
  v1::MeasureTrials request;
  for (const std::uint32_t trial : {7U, 9U}) {
    v1::MeasureTrials::Item& item = *request.add_items();
    item.set_trial(trial);
    item.set_samples(2);
  }
  const std::vector<TimedWork> works(2);
  const BlockTools tools{f.timer, [&] { return f.reading(1000); }, f.throttle, f.facts};
  const auto measured = measure_blocks(tools, f.problem, works, request, MeasureSettings{});
  REQUIRE(measured.size() == 2);
  CHECK(measured[0].trial() == 7);
  CHECK(measured[1].trial() == 9);
  CHECK(measured[1].samples_us_size() == 2);
  request.mutable_items(1)->set_samples(3);
  CHECK_THROWS_AS(measure_blocks(tools, f.problem, works, request, MeasureSettings{}), Error);
}

// What a sample did, in order.
struct Steps {
  SampleSteps steps() {
    SampleSteps made;
    made.restore = [this] { done += "restore "; };
    made.flush = [this] { done += "flush "; };
    made.run = [this] { done += "run "; };
    made.kernels = 1;
    return made;
  }
  std::string of(const TimedWork& work) {
    done.clear();
    if (work.before) {
      work.before();
    }
    work.timed();
    return done;
  }
  std::string done;
};

TEST_CASE("the L2 is flushed after buffers are restored and before the timed kernels") {
  Steps f;
  CHECK(f.of(timed_work(f.steps())) == "restore flush run ");
}

TEST_CASE("what a plan does not need is left out of its samples") {
  Steps f;
  SampleSteps warm = f.steps(), cold = f.steps(), bare = f.steps();
  warm.flush = cold.restore = bare.restore = bare.flush = nullptr;
  CHECK(f.of(timed_work(warm)) == "restore run ");
  CHECK(f.of(timed_work(cold)) == "flush run ");
  CHECK_FALSE(timed_work(bare).before);
}

TEST_CASE("kernels and graph of the steps are those of the work and no kernels are refused") {
  Steps f;
  SampleSteps steps = f.steps();
  steps.kernels = 3;
  steps.as_graph = true;
  CHECK(timed_work(steps).kernels == 3);
  CHECK(timed_work(steps).as_graph);
  steps.flush_kernels = 1;
  CHECK(timed_work(steps).kernels_before == 1);
  steps.move = [] {};
  steps.move_kernels = 2;
  CHECK(timed_work(steps).kernels_before == 3);
  steps.move = steps.flush = nullptr;
  CHECK(timed_work(steps).kernels_before == 0);
  steps.kernels = 0;
  CHECK_THROWS_AS(timed_work(steps), Error);
}

TEST_CASE("the warm-up runs whole samples and waits for them before it reads the clock") {
  Steps f;
  MeasureSettings settings;
  settings.steady_limit = std::chrono::minutes(1);
  const WarmUpResult result = warm_up_with(
      timed_work(f.steps()), [&] { f.done += "wait "; },
      [&] {
        CHECK(f.done.ends_with("restore flush run wait "));
        return 1980U;
      },
      settings);
  CHECK(result.steady);
  CHECK(result.readings == settings.steady_readings);
}

}  // namespace
}  // namespace cubind::worker
