#include "tuner/agent/ahead_compiles.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

// The job of a World, announced to its agent.
struct AheadFixture {
  World world{Behaviour{}};
  CompileCache compiles{world.compiler};
  v1::DeviceInfo device = world.device.info();

  void compile_ahead() {
    const v1::LeaseGrant next = world.channel.grant();
    AheadCompiles ahead(compiles, world.builds, next, device);
    ahead.wait();
  }
};

TEST_CASE_METHOD(AheadFixture,
                 "a job that was compiled ahead waits for no compile, and counts what was compiled for it") {
  compile_ahead();
  CHECK(world.compiler.compiled.size() == 25);  // 24 and the reference
  REQUIRE(world.run_with(compiles).status() == v1::JobResult::DONE);
  CHECK(world.compiler.compiled.size() == 25);
  for (const auto& [entry, count] : world.compiler.compiled) {
    CHECK(count == 1);
  }
  CHECK(world.channel.told.back().nvrtc_calls() == 25);
}

TEST_CASE_METHOD(AheadFixture, "what the daemon has or knows not to compile is not compiled ahead") {
  world.compiler.refuses = [](const std::string& entry) { return entry == "simulated<float, 3, 2>"; };
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  world.compiler.compiled.clear();
  compile_ahead();
  CHECK(world.compiler.compiled.size() == 1);  // the reference, which is no trial
}

TEST_CASE_METHOD(AheadFixture, "a job that nobody waits for is compiled in the background") {
  world.channel.frame.set_nobody_waits(true);
  compile_ahead();
  CHECK(world.compiler.submitted == std::vector(25, CompilePriority::Background));
}

TEST_CASE_METHOD(AheadFixture, "compiling ahead ends with its object") {
  world.compiler.is_stuck = true;
  { const AheadCompiles ahead(compiles, world.builds, world.channel.grant(), device); }
  CHECK(world.compiler.under_way() == 0);
}

}  // namespace
}  // namespace cubind::test
