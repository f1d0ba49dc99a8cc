#include "tuner/agent/compile/ahead_compiles.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "plan/wire.hpp"
#include "tests/support/eventually.hpp"
#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

// The job of a World, announced to its agent.
struct AheadFixture {
  World world{Behaviour{}};
  v1::DeviceInfo device = world.device.info();

  void compile_ahead(CompilePriority priority = CompilePriority::Ahead) {
    AheadCompiles ahead(world.compiler, world.builds, world.channel.grant(), device, {priority});
    ahead.wait();
  }
};

TEST_CASE_METHOD(AheadFixture,
                 "a job that was compiled ahead waits for no compile, and counts what was compiled for it") {
  compile_ahead();
  CHECK(world.compiler.compiled.size() == 25);  // 24 and the reference
  REQUIRE(world.run_with_kept_compiles().status() == v1::JobResult::DONE);
  CHECK(world.compiler.compiled.size() == 25);
  for (const auto& [entry, count] : world.compiler.compiled) {
    CHECK(count == 1);
  }
  CHECK(world.channel.told.back().nvrtc_calls() == 25);
}

TEST_CASE_METHOD(AheadFixture, "what the daemon has or knows not to compile is not compiled ahead") {
  world.compiler.refuses = [](const std::string& entry) { return entry == "simulated<float, 3, 2>"; };
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  world.compiler.forget_all();
  world.compiler.compiled.clear();
  compile_ahead();
  CHECK(world.compiler.compiled.size() == 1);  // the reference, which is no trial
}

TEST_CASE_METHOD(AheadFixture, "all that a search tries before it needs a result is compiled ahead") {
  world.channel.frame.set_max_trials(20);
  for (const std::int64_t a : {1, 2, 3, 4, 5, 6}) {
    for (const std::int64_t b : {1, 2}) {
      to_wire(configuration(a, b), *world.channel.frame.add_hints());
    }
  }
  compile_ahead();
  // Among them the default, then the middle of the space, and the reference.
  CHECK(world.compiler.compiled.size() == 14);
}

TEST_CASE_METHOD(AheadFixture, "a job that no caller waits for is compiled in the background") {
  world.channel.frame.set_background(true);
  compile_ahead(CompilePriority::Tuning);
  CHECK(world.compiler.submitted == std::vector(25, CompilePriority::Background));
}

TEST_CASE_METHOD(AheadFixture,
                 "a job that a caller waits for is compiled with the priority that was asked for") {
  const auto priority = GENERATE(CompilePriority::Ahead, CompilePriority::Tuning);
  compile_ahead(priority);
  CHECK(world.compiler.submitted == std::vector(25, priority));
}

TEST_CASE_METHOD(AheadFixture, "as many compiles are under way ahead as were asked for") {
  world.compiler.is_stuck = true;
  const AheadCompiles ahead(world.compiler, world.builds, world.channel.grant(), device,
                            {CompilePriority::Tuning, 5});
  CHECK(eventually([&] { return world.compiler.under_way() == 5; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(world.compiler.under_way() == 5);
}

TEST_CASE_METHOD(AheadFixture, "compiling ahead ends with its object") {
  world.compiler.is_stuck = true;
  { const AheadCompiles ahead(world.compiler, world.builds, world.channel.grant(), device, {}); }
  CHECK(world.compiler.under_way() == 0);
}

}  // namespace
}  // namespace cubind::test
