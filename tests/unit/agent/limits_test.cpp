// Entries that take or allow less than the spec plans.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "plan/wire.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tests/unit/spec/cubin_builder.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

constexpr const char* kFastest = "simulated<float, 3, 2>";

/// x and y.
std::string two_pointers() { return parameter(0, 0, 8) + parameter(1, 8, 8) + all_bytes(16); }

/// The cubin of one entry tells this.
void tell(World& world, const std::string& entry, const std::string& section) {
  world.compiler.cubin = [=](const std::string& compiled, const std::string& symbol) {
    return compiled == entry ? make_cubin({{symbol, section}}) : "";
  };
}

std::size_t blocks_of(const World& world, const Configuration& configuration) {
  const v1::TrialHeader* trial = world.channel.trial(configuration);
  return static_cast<std::size_t>(std::ranges::count_if(
      world.channel.blocks, [&](const auto& item) { return item.second.trial_key() == trial->trial_key(); }));
}

TEST_CASE("a configuration that its entry does not allow is an outcome and is never launched") {
  World world({});
  tell(world, kFastest, two_pointers() + extents(0x05, 16, 1, 1));
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(count_of(result, v1::CONSTRAINT) == 1);
  CHECK(text(result.winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  REQUIRE(trial);
  CHECK(trial->outcome() == v1::CONSTRAINT);
  CHECK_THAT(trial->detail(), StartsWith("/launches/0/block: ") && Contains("at most 16 threads per block"));
  CHECK(blocks_of(world, configuration(3, 2)) == 0);
}

TEST_CASE("a configuration that its entry allows is measured") {
  World world({});
  tell(world, kFastest, two_pointers() + extents(0x05, 32, 1, 1) + extents(0x10, 32, 1, 1));
  const v1::JobResult result = world.run();
  CHECK(count_of(result, v1::CONSTRAINT) == 0);
  CHECK(blocks_of(world, configuration(3, 2)) > 0);
}

TEST_CASE("a winner whose entry does not allow a tail is out with the tail's problem") {
  World world({});
  // 1024 rows make 342 blocks, which clusters of 2 divide; the bucket has problems with an odd number.
  tell(world, kFastest, two_pointers() + extents(0x3d, 2, 1, 1));
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  CHECK(trial->outcome() == v1::CONSTRAINT);
  CHECK_THAT(trial->detail(), StartsWith("N=") && Contains(",T=f32: /launches/0/grid: "));
}

TEST_CASE("a configuration for which the compiler wants more shared memory than there is is never launched") {
  World world({});
  world.compiler.launch_shared = [](const std::string& entry) { return entry == kFastest ? 232449u : 4096u; };
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  REQUIRE(trial);
  CHECK(trial->outcome() == v1::CONSTRAINT);
  CHECK_THAT(trial->detail(), Contains("takes 232449 bytes of shared memory, the device has 232448"));
  CHECK(blocks_of(world, configuration(3, 2)) == 0);
}

/// The others are compared with the default configuration, A=1 and B=1.
void compare_with_default(World& world) {
  OrderedJson spec = OrderedJson::parse(world.channel.frame.spec().spec_json());
  spec["reference"] = "default";
  world.channel.frame.mutable_spec()->set_spec_json(spec.dump());
}

TEST_CASE("a default that the others are compared with and that does not compile ends the job with the log") {
  World world({});
  compare_with_default(world);
  world.compiler.refuses = [](const std::string& entry) { return entry == "simulated<float, 1, 1>"; };
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), StartsWith("simulated at N=1024,T=f32: the default configuration") &&
                                 EndsWith("does not compile: refused"));
}

TEST_CASE("a default that the others are compared with and that takes too much shared memory ends the job") {
  World world({});
  compare_with_default(world);
  world.compiler.launch_shared = [](const std::string& entry) {
    return entry == "simulated<float, 1, 1>" ? 232449u : 0u;
  };
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("cannot be launched: ") && Contains("232449 bytes of shared memory"));
}

TEST_CASE("verifications and measurements launch with the shared memory that the compiler decided") {
  World world({});
  world.compiler.launch_shared = [](const std::string&) { return 4096u; };
  CHECK(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.shared_bytes == std::set<std::uint64_t>{4096});
}

TEST_CASE("arguments of another size than the cubin's parameters end the job") {
  World world({});
  tell(world, kFastest, parameter(0, 0, 8) + parameter(1, 8, 16) + all_bytes(24));
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), EndsWith("/launches/0/arguments/1: y is a buffer of f32 (float*), the entry's "
                                      "parameter is of 16 bytes"));
}

TEST_CASE("a reference that its entry does not allow ends the job before anything is launched") {
  World world({});
  tell(world, "reference<float>", two_pointers() + extents(0x10, 64, 1, 1));
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("/reference/launches/0/block: ") &&
                                 EndsWith("compiled for blocks of 64 x 1 x 1 threads and no others"));
  CHECK(world.channel.blocks.empty());
}

TEST_CASE("a job that is resumed has the same outcomes of entries that allow less") {
  World undisturbed({});
  tell(undisturbed, kFastest, two_pointers() + extents(0x05, 16, 1, 1));
  const v1::JobResult expected = undisturbed.run();
  for (std::size_t kill = 0; kill < undisturbed.channel.batches; kill += 3) {
    INFO("at batch " << kill);
    World world({});
    tell(world, kFastest, two_pointers() + extents(0x05, 16, 1, 1));
    world.channel.die_at = kill;
    REQUIRE_FALSE(world.try_run());
    const v1::JobResult resumed = world.run();
    CHECK(text(resumed.winner()) == text(expected.winner()));
    CHECK(count_of(resumed, v1::CONSTRAINT) == 1);
    CHECK(blocks_of(world, configuration(3, 2)) == 0);
  }
}

}  // namespace
}  // namespace cubind::test
