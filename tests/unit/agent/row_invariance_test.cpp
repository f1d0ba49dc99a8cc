#include <catch2/catch.hpp>

#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// N=1024; the default is A=1,B=1, the fastest A=3,B=2.
struct InvariantWorld : World {
  explicit InvariantWorld(Behaviour behaviour) : World(std::move(behaviour)) {
    channel.frame.mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
    channel.frame.mutable_numerics()->set_invariant_dim("N");
  }
};

std::int64_t rows(const Problem& problem) { return problem.dim("N").value(); }

// What the device needs for the trials of one problem of n rows and nothing else: as setup_memory
// reckons.
std::uint64_t room_for_one(std::uint64_t n) {
  constexpr std::uint64_t kGuard = 2 * (64 << 10) + 256;
  return 3 * (n * sizeof(float) + kGuard) + (102 << 20);
}

TEST_CASE("where rows must be invariant a configuration whose rows are not the default's cannot win") {
  const auto other_rows = [](const Configuration& one, const Problem&, std::uint64_t) {
    return std::uint64_t{one == configuration(3, 2)};
  };
  World tolerant({.row_bits = other_rows});
  CHECK(text(tolerant.run().winner()) == "A=3,B=2");
  InvariantWorld world({.row_bits = other_rows});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
}

TEST_CASE("rows that are not the default's are no outcome of the trial") {
  InvariantWorld world({.row_bits = [](const Configuration& one, const Problem&, std::uint64_t) {
    return std::uint64_t{one == configuration(3, 2)};
  }});
  world.run();
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::CORRECT);
  world.channel.frame.clear_numerics();
  CHECK(text(world.run().winner()) == "A=3,B=2");
}

TEST_CASE("where all rows are the default's the fastest wins as it does without invariance") {
  InvariantWorld world({});
  CHECK(text(world.run().winner()) == "A=3,B=2");
}

TEST_CASE("a configuration whose rows differ at a tail of its bucket alone cannot win") {
  InvariantWorld world({.row_bits = [](const Configuration& one, const Problem& problem, std::uint64_t) {
    return std::uint64_t{one == configuration(3, 2) && rows(problem) < 1024};
  }});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
}

TEST_CASE("a default whose first rows depend on the size fails the job and both sizes are named") {
  InvariantWorld world({.row_bits = [](const Configuration&, const Problem& problem, std::uint64_t) {
    return std::uint64_t{rows(problem) < 512};
  }});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(),
             Contains("numerics invariant:N: the default configuration gives the first rows other bits at "
                      "N=1024,T=f32 (A=1,B=1) than at N=1,T=f32 (A=1,B=1)"));
}

TEST_CASE("a default is compared at the smallest size and at one from 7 and at half of the problem's") {
  InvariantWorld world({});
  world.run();
  for (const char* size : {"1", "7", "513"}) {
    INFO(size);
    CHECK(world.device.verified.contains("A=1,B=1 at N=" + std::string(size) + ",T=f32"));
    CHECK(world.device.verified.contains("A=1,B=1 at N=" + std::string(size) + ",T=f32 after"));
  }
}

TEST_CASE("a default whose bits differ from run to run fails a job that wants invariance") {
  InvariantWorld world({.bits_differ = [](const Configuration& one) { return one == configuration(1, 1); }});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("has other bits from run to run"));
}

TEST_CASE("a fault of the default counts against a job that wants invariance when it has repeated") {
  int faults = 0;
  InvariantWorld world({.outcome = [&](const Configuration& one, const std::string& at) {
    const bool fails = at == "verify" && one == configuration(1, 1) && faults++ == 1;
    return fails ? v1::RUNTIME : v1::CORRECT;
  }});
  CHECK(text(world.run().winner()) == "A=3,B=2");
  CHECK(faults > 1);
}

TEST_CASE("a resumed job compares rows again and measures no block again") {
  InvariantWorld world({});
  world.channel.die_at = 20;
  world.channel.die_after_storing = true;
  CHECK_FALSE(world.try_run());
  world.channel.die_at = std::numeric_limits<std::size_t>::max();
  // Another toolchain's bits would be seen: what was stored before says nothing of rows.
  world.device.behaviour().row_bits = [](const Configuration& one, const Problem&, std::uint64_t) {
    return std::uint64_t{one == configuration(3, 2)};
  };
  CHECK(text(world.run().winner()) != "A=3,B=2");
  for (const auto& [sample, times] : world.device.measured) {
    CHECK(times == 1);
  }
}

// The same kernel with a default of its own for small problems.
std::string two_defaults(std::string spec) {
  const std::string one = R"("default": [{"A": 1, "B": 1}])";
  const std::string constraint = R"("A * B <= 24")";
  spec.replace(spec.find(one), one.size(), R"("default": [{"A": 1, "B": 1}, {"A": 6, "B": 4}])");
  return spec.replace(spec.find(constraint), constraint.size(), R"("N >= 128 || A == 6")");
}

TEST_CASE("where small problems have another default its rows are compared with those of the large ones") {
  const bool differ = GENERATE(false, true);
  InvariantWorld world({.row_bits = [&](const Configuration& one, const Problem&, std::uint64_t) {
    return std::uint64_t{differ && one == configuration(6, 4)};
  }});
  v1::SpecBundle& spec = *world.channel.frame.mutable_spec();
  spec.set_spec_json(two_defaults(spec.spec_json()));
  const v1::JobResult result = world.run();
  CHECK(world.device.verified.contains("A=6,B=4 at N=1,T=f32"));
  CHECK((result.status() == v1::JobResult::DONE) == !differ);
  if (differ) {
    CHECK_THAT(result.error(), Contains("N=1024,T=f32 (A=1,B=1) than at N=1,T=f32 (A=6,B=4)"));
  }
}

TEST_CASE("rows are compared at a tail that fits into the memory only without the measured problem") {
  const bool differ = GENERATE(false, true);
  InvariantWorld world({.row_bits = [&](const Configuration& one, const Problem& problem, std::uint64_t) {
    return std::uint64_t{differ && one == configuration(3, 2) && rows(problem) < 1024};
  }});
  world.device.behaviour().memory_limit = room_for_one(1024);
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK((text(result.winner()) == "A=3,B=2") == !differ);
}

TEST_CASE("a trial that is wrong on record stays wrong though its first verification was right") {
  InvariantWorld world({.below_floor = [](const Configuration& one) { return one == configuration(3, 2); }});
  CHECK(text(world.run().winner()) != "A=3,B=2");
  world.device.behaviour().below_floor = {};
  CHECK(text(world.run().winner()) != "A=3,B=2");
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::WRONG_RESULT);
}

TEST_CASE("a record of invariant rows names what they were compared with") {
  InvariantWorld world({});
  World tolerant({});
  CHECK(world.run().provenance().verification().digest() !=
        tolerant.run().provenance().verification().digest());
}

TEST_CASE(
    "a device that plays a table compares no rows and a job that wants them compared fails and says so") {
  InvariantWorld world({.replay_table = Digest::of("table").hex()});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(),
             Contains("numerics invariant:N: a recorded table has times and no rows to compare"));
  CHECK(world.channel.blocks.empty());
}

TEST_CASE("a dim that the kernel has not is refused with its name") {
  InvariantWorld world({});
  world.channel.frame.mutable_numerics()->set_invariant_dim("M");
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("\"M\" is not a dim of simulated"));
}

}  // namespace
}  // namespace cubind::test
