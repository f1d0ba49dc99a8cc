#include "tuner/agent/compile/toolbox.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "plan/wire.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/triton_kernel.hpp"
#include "tuner/agent/compile/compile_job.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// Of all NVRTC installations of the tests: 13 and, where it is there, 12.
const Toolbox& toolbox() {
  static const Toolbox made = [] {
    AgentOptions options;
    options.worker_program = bin_dir() / "cubind-worker";
    return Toolbox(options, {toolchains(), {}});
  }();
  return made;
}

constexpr std::uint32_t kCuda11 = 11080, kCuda12 = 12040, kCuda13 = 13000, kCuda14 = 14000;

// vector_add with its default configuration.
v1::CheckOrder check_of_vector_add() {
  const auto spec = load_kernel_spec((source_dir() / "variants" / "vector_add" / "vector_add.json").string());
  const Problem problem = spec->canonicalize(parse_problem("N=4096,T=f32"), "problem");
  v1::CheckOrder order;
  to_wire(spec->bundle, *order.mutable_spec());
  to_wire(problem, *order.mutable_problem());
  to_wire(spec->canonicalize(spec->defaults.front(), "default"), *order.mutable_configuration());
  order.set_architecture("sm_90");
  return order;
}

// Whichever file the reference is in: without it there is no such entry.
void break_reference(v1::SpecBundle& bundle) {
  OrderedJson spec = OrderedJson::parse(bundle.spec_json());
  const std::string source = spec.at("reference").at("source");
  for (v1::SourceFile& file : *bundle.mutable_files()) {
    if (file.path() == source) {
      file.set_content("#error there is no reference\n");
    }
  }
}

}  // namespace

TEST_CASE("a check compiles the reference and names it where it does not compile") {
  JobStop stop;
  v1::CheckOrder order = check_of_vector_add();
  CHECK(run_check(order, toolbox(), stop).faults().empty());
  break_reference(*order.mutable_spec());
  const v1::CheckResult result = run_check(order, toolbox(), stop);
  CHECK(result.outcome() == v1::CORRECT);
  REQUIRE(result.faults_size() == 1);
  CHECK(result.faults(0).pointer() == "/reference/source");
  CHECK_THAT(result.faults(0).cause(), Contains("there is no reference"));
}

TEST_CASE("a check compares the reference's arguments with its entry") {
  v1::CheckOrder order = check_of_vector_add();
  OrderedJson spec = OrderedJson::parse(order.spec().spec_json());
  OrderedJson& passed = spec["reference"]["launches"][0]["arguments"];
  passed.erase(passed.size() - 1);
  order.mutable_spec()->set_spec_json(spec.dump());
  JobStop stop;
  const v1::CheckResult result = run_check(order, toolbox(), stop);
  CHECK(result.outcome() == v1::CORRECT);
  REQUIRE(result.faults_size() == 1);
  CHECK(result.faults(0).pointer() == "/reference/launches/0/arguments");
  CHECK_THAT(result.faults(0).cause(), Contains("has 3, the entry takes 4"));
}

TEST_CASE("the newest NVRTC whose major version the driver supports compiles") {
  CHECK(toolbox().choose({kCuda13, ""}).offer().major() == toolchains().front().major);
  CHECK(toolbox().choose({kCuda14, ""}).offer().major() == toolchains().front().major);
  CHECK(toolbox().choose({0, "sm_90"}).offer().major() == toolchains().front().major);
}

TEST_CASE("for a driver of CUDA 12 NVRTC 12 compiles") {
  if (!toolchain(12)) {
    return skip_test("there is no NVRTC 12 on this machine");
  }
  CHECK(toolbox().choose({kCuda12, "sm_90"}).offer().major() == 12);
}

TEST_CASE("where no NVRTC suits the driver the error names the driver and what there is") {
  const Error error = error_of([&] { toolbox().choose({kCuda11, "sm_90"}); }).value();
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  CHECK_THAT(error.what(), Contains("11080") && Contains(toolchains().front().name()));
}

TEST_CASE("an architecture that no NVRTC knows is named with what there is") {
  CHECK_THROWS_WITH(toolbox().choose({kCuda13, "sm_999"}),
                    Contains("sm_999") && Contains(toolchains().front().name()));
}

TEST_CASE("a Triton that is named is offered behind NVRTC with its ptxas for each architecture") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  AgentOptions options;
  options.worker_program = bin_dir() / "cubind-worker";
  options.triton_worker = triton_worker();
  options.triton_pythons = {triton_python()};
  const Toolbox both(options, {toolchains(), {}});
  REQUIRE(both.tools().size() == toolchains().size() + 1);
  const v1::Toolchain& offer = both.tools().back().offer();
  CHECK_THAT(offer.name(), Catch::StartsWith("triton 3."));
  CHECK(offer.architectures_size() > 0);
  CHECK(offer.assemblers_size() == offer.architectures_size());
  const TritonTarget target{offer.name().substr(7), offer.assemblers(0), offer.architectures(0)};
  CHECK(&both.choose({.triton = target}) == &both.tools().back());
  CHECK_THROWS_WITH(both.choose({.triton = TritonTarget{"3.0.0", target.ptxas, target.architecture}}),
                    Contains("needs triton 3.0.0") && Contains("this agent has " + offer.name()));
  CHECK_THROWS_WITH(both.choose({.architecture = "sm_70", .triton = target}),
                    Contains("the job is for sm_70"));
}

}  // namespace cubind::test
