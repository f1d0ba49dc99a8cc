// Jobs of a Triton kernel: a real Triton compiles, and a recorded table is the GPU.
#include <algorithm>
#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/service/agent/agent_fixture.hpp"
#include "tests/support/replayed_triton.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

struct TritonAgent {
  explicit TritonAgent(TritonSpec builder)
      : spec(builder.parse()), agent("{}", {"--triton-python", triton_python()}, rows_table(spec->name)) {}

  v1::LeaseGrant tune_lease() { return replayed_lease(agent.device(), spec->bundle, kRowsProblem); }
  v1::LeaseGrant compile_lease(std::int64_t index) {
    v1::LeaseGrant lease = tune_lease();
    lease.set_kind(v1::Job::COMPILE_WINNER);
    lease.set_architecture("sm_90");
    lease.clear_gpu_uuid();
    to_wire(rows_configuration(index), *lease.add_listed());
    return lease;
  }

  std::shared_ptr<const KernelSpec> spec;
  AgentFixture agent;
};

TEST_CASE("an agent with a Triton offers it and compiles the kernels of that Triton") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  const TritonTarget target = real_target();
  TritonAgent triton(real_triton_spec(target));
  const v1::JobResult result = triton.agent.run(triton.compile_lease(0));
  INFO(result.error());
  REQUIRE(result.status() == v1::JobResult::DONE);
  const v1::Hello hello = triton.agent.daemon.hello()->hello();
  const v1::Toolchain& offered = *hello.toolchains().rbegin();
  CHECK(offered.name() == target.name());
  CHECK(offered.assemblers_size() == offered.architectures_size());
  const v1::Batch stored = triton.agent.stored();
  REQUIRE(stored.artifacts_size() == 1);
  const v1::ArtifactUpload& artifact = stored.artifacts(0);
  CHECK(artifact.toolchain().name() == target.name());
  CHECK(artifact.entry_symbols(0) == "rows");
  CHECK(artifact.info().architecture() == "sm_90");
  CHECK(artifact.info().cubin_bytes() > 0);
  CHECK(artifact.info().entries(0).launch_shared_bytes() > 0);
}

TEST_CASE("a Triton kernel is tuned to its recorded winner and each configuration is compiled once") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  TritonAgent triton(real_triton_spec(real_target()));
  const v1::JobResult result = triton.agent.run(triton.tune_lease());
  INFO(result.error());
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(configuration_from_wire(result.winner(), "winner") == rows_configuration(2));
  CHECK(triton.agent.stored().artifacts_size() == 3);
  std::uint32_t calls = 0;
  for (const auto& message : triton.agent.daemon.messages()) {
    calls = std::max(calls, message.progress().nvrtc_calls());
  }
  CHECK(calls == 3);
}

TEST_CASE("a text that is not Triton's IR costs its configuration and the job goes on") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  TritonSpec builder = real_triton_spec(real_target());
  builder.texts.emplace_back("module { tt.func @rows(");
  builder.json["configurations"][2] = triton_configuration(2, builder.texts.back(), 8, 8);
  TritonAgent triton(builder);
  const v1::JobResult result = triton.agent.run(triton.tune_lease());
  INFO(result.error());
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(configuration_from_wire(result.winner(), "winner") == rows_configuration(1));
  const v1::Batch stored = triton.agent.stored();
  const auto refused = std::ranges::find(stored.trials(), v1::COMPILE, &v1::TrialHeader::outcome);
  REQUIRE(refused != stored.trials().end());
  CHECK_FALSE(refused->detail().empty());
}

TEST_CASE("a kernel of another Triton fails with the one that it needs and the one that there is") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  const TritonTarget target = real_target();
  const auto [version, ptxas] = GENERATE_COPY(std::pair(std::string("3.0.0"), target.ptxas),
                                              std::pair(target.version, std::string("11.8.89")));
  TritonAgent triton(real_triton_spec({version, ptxas, "sm_90"}));
  const bool tunes = version == "3.0.0";
  const v1::JobResult result = triton.agent.run(tunes ? triton.tune_lease() : triton.compile_lease(0));
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("needs triton " + version + " with its ptxas " + ptxas) &&
                                 Contains("this agent has " + target.name() + " (ptxas " + target.ptxas) &&
                                 Contains(tunes ? "pip install triton==3.0.0" : "TRITON_PTXAS_PATH"));
}

TEST_CASE("an agent without a Triton works for CUDA kernels and fails Triton's with what to do") {
  const auto spec = TritonSpec().parse();
  AgentFixture agent("{}", {"--triton-python", "/usr/bin/false"});
  const v1::LeaseGrant cuda = agent.lease();
  const v1::JobResult result = agent.run(replayed_lease(agent.device(), spec->bundle, kRowsProblem));
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Contains("this agent has no Triton; ") &&
                                 Contains("/usr/bin/false) is left out") && Contains("--triton-python"));
  agent.daemon.forget();
  CHECK(agent.run(cuda).status() == v1::JobResult::DONE);
}

}  // namespace
}  // namespace cubind::test
