// A bound plan over a driver whose device memory is this process's.
#include <array>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/unit/device_worker/host_driver.hpp"
#include "tuner/worker/plan_launcher.hpp"

namespace cubind::worker {
namespace {

struct ModuleOnHost {
  std::shared_ptr<const cuda::DriverApi> api = test::make_host_driver();
  LoadedModule module{*api, "cubin", {"convolve"}, "a test"};
  std::vector<float> filter = {1, 2, 3};

  static LaunchPlan plan(Role role, std::uint64_t bytes) {
    Launch launch{"convolve", "convolve", {}, {}, 0, {}};
    launch.parameters = {
        {"n", ParameterSource::Value, DType::I64, Role::None, 0, 0, 7},
        {"filter", ParameterSource::Symbol, DType::F32, role, bytes, 16, 0, {}, "d_filter", "d_filter"}};
    return {{launch}};
  }
  BoundPlan bind(const LaunchPlan& plan) const {
    const auto address = reinterpret_cast<cuda::DevicePtr>(filter.data());  // NOLINT: the host's memory
    return {module, plan, [=](const Parameter&) { return address; }, [](const Parameter&) { return 0.0; },
            nullptr};
  }
};

}  // namespace

TEST_CASE_METHOD(ModuleOnHost,
                 "an input is copied to its variable when the plan is bound and not at launch") {
  const BoundPlan bound = bind(plan(Role::In, 12));
  CHECK(test::variable("d_filter") == std::vector<float>{1, 2, 3});
  filter = {4, 5, 6};
  bound.enqueue(nullptr);
  CHECK(test::launched().at("convolve") == 1);
  CHECK(test::variable("d_filter") == std::vector<float>{1, 2, 3});
  bind(plan(Role::In, 8));
  CHECK(test::variable("d_filter") == std::vector<float>{4, 5, 3});
}

TEST_CASE("a kernel gets the descriptor of a buffer where it takes a tensor map") {
  const auto api = test::make_host_driver();
  const LoadedModule module(*api, "cubin", {"two_pointers"}, "a test");
  Launch launch{"two_pointers", "two_pointers", {}, {}, 0, {}};
  launch.parameters = {{"x", ParameterSource::Buffer, DType::F32, Role::In, 4096, 16},
                       {"x", ParameterSource::TensorMap, DType::F32, Role::In, 4096, 16}};
  launch.parameters[1].tensor_map = {"x_map", TensorMapType::F32, false, 1, {1024}, {}, {64}, {1}};
  std::uint64_t wanted = 0;
  const BoundPlan bound(
      module, {{launch}},
      [&](const Parameter& parameter) {
        wanted += parameter.extent_bytes;
        return cuda::DevicePtr{0x1000};
      },
      [](const Parameter&) { return 0.0; }, nullptr);
  bound.enqueue(nullptr);
  CHECK(wanted == 2 * 4096);  // so that its buffer is poisoned and guarded like any other
  CHECK(test::last_pointers() == std::array<cuda::DevicePtr, 2>{0x1000, 0x1000});
}

TEST_CASE_METHOD(ModuleOnHost, "a variable of role scratch is left alone") {
  bind(plan(Role::Scratch, 12));
  CHECK(test::variable("d_filter").empty());  // nothing has asked for it
}

TEST_CASE_METHOD(ModuleOnHost, "an input that the variable does not hold is refused by name") {
  CHECK_THROWS_WITH(bind(plan(Role::In, 16)),
                    "argument filter: has 16 bytes, the variable d_filter holds 12");
}

}  // namespace cubind::worker
