// Problems that the device has no memory for.
#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/memory_refusal.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// What the trials of N=n take: x, y and the reference's y with their red zones, twice an L2 of 50 MiB, and
// the worker's own 2 MiB.
std::uint64_t bytes_for(std::uint64_t n) {
  constexpr std::uint64_t kGuard = 2 * (64 << 10) + 256;
  return 3 * (n * sizeof(float) + kGuard) + (102 << 20);
}

// The lease is for N=1024 of the bucket from 257 to 1024.
struct LimitedWorld : World {
  LimitedWorld(std::uint64_t limit, bool for_bucket) : World({}) {
    device.behaviour().memory_limit = limit;
    channel.frame.set_for_bucket(for_bucket);
  }
};

std::string smaller(const v1::JobResult& result) {
  return to_string(problem_from_wire(result.smaller_problem(), "smaller"));
}

TEST_CASE("a job for a bucket names the first smaller problem that fits and has compiled nothing") {
  LimitedWorld world(bytes_for(640), true);
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::SMALLER);
  CHECK(smaller(result) == "N=640,T=f32");
  CHECK_THAT(result.error(), Contains("simulated at N=1024,T=f32: out of device memory") &&
                                 Contains(std::to_string(bytes_for(1024)) + " bytes are needed"));
  CHECK(world.compiler.compiled.empty());
}

TEST_CASE("one byte less of memory and the next smaller problem is named") {
  CHECK(smaller(LimitedWorld(bytes_for(640) - 1, true).run()) == "N=448,T=f32");
}

TEST_CASE("a job for exactly its problem fails with the device's reason and what it needs") {
  const v1::JobResult result = LimitedWorld(bytes_for(640), false).run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("simulated at N=1024,T=f32: out of device memory: simulated"));
  CHECK(result.needs_bytes() == bytes_for(1024));
}

TEST_CASE("a job for a bucket none of whose problems fits fails with what the smallest one needs") {
  const v1::JobResult result = LimitedWorld(bytes_for(257) - 1, true).run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK(result.needs_bytes() == bytes_for(257));
  CHECK_THAT(result.error(), Contains("of its bucket N=257,T=f32 still needs"));
}

TEST_CASE(
    "a problem that the device refuses although it was reckoned to fit is replaced by the next smaller") {
  LimitedWorld world(0, true);
  world.device.behaviour().refuses_to_prepare = [](const Problem& one) { return *one.dim("N") > 800; };
  CHECK(smaller(world.run()) == "N=640,T=f32");
}

TEST_CASE("a lease for the smaller problem is measured to its end under that problem") {
  LimitedWorld world(bytes_for(640), true);
  to_wire(parse_problem("N=640,T=f32"), *world.channel.frame.mutable_problem());
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(to_string(problem_from_wire(result.measured_problem(), "measured")) == "N=640,T=f32");
}

// A device that is refused once because another process has taken it, which stays for a few looks.
struct TakenWorld : World {
  TakenWorld() : World({.answers_beside_others = true}) {
    device.behaviour().refuses_to_prepare = [this](const Problem&) {
      const bool now = std::exchange(comes_, false);
      stays_ = now ? 3 : stays_;
      return now;
    };
    device.behaviour().foreign = [this] { return stays_ > 0 && stays_-- > 0; };
    channel.frame.set_for_bucket(true);
  }

 private:
  bool comes_ = true;
  int stays_ = 0;
};

TEST_CASE("memory that another process has taken is waited for and the bucket's own problem is measured") {
  TakenWorld world;
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(to_string(problem_from_wire(result.measured_problem(), "measured")) == "N=1024,T=f32");
}

TEST_CASE("a job for an idle GPU alone is handed back where another process has taken the memory") {
  TakenWorld world;
  world.channel.frame.set_only_when_idle(true);
  CHECK(world.run().status() == v1::JobResult::INTERRUPTED);
}

TEST_CASE("a refused job waits for the memory that it needs and only where it was allowed less") {
  CHECK(memory_to_wait_for(1601, 1600) == 1601);
  CHECK(memory_to_wait_for(1600, 1600) == 0);
}

TEST_CASE("a job that a device refuses with memory enough is put off by time and not by memory") {
  LimitedWorld world(std::uint64_t{1} << 40, true);
  world.device.behaviour().refuses_to_prepare = [](const Problem&) { return true; };
  v1::JobResult result = world.run();
  while (result.status() == v1::JobResult::SMALLER) {
    *world.channel.frame.mutable_problem() = result.smaller_problem();
    result = world.run();
  }
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK(result.needs_bytes() == 0);
}

TEST_CASE("a tail that does not fit next to the measured problem is verified in its place") {
  LimitedWorld world(bytes_for(1024), false);
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.verified.contains("A=3,B=2 at N=257,T=f32 after"));
  CHECK(world.device.verified.contains("A=3,B=2 at N=1022,T=f32 after"));
}

TEST_CASE("a tail that is larger than what fits is left out") {
  LimitedWorld world(bytes_for(640), true);
  to_wire(parse_problem("N=640,T=f32"), *world.channel.frame.mutable_problem());
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.verified.contains("A=3,B=2 at N=257,T=f32 after"));
  CHECK_FALSE(world.device.verified.contains("A=3,B=2 at N=1022,T=f32 after"));
}

}  // namespace
}  // namespace cubind::test
