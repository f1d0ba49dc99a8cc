#include "plan/launch_digest.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <set>

namespace cubind {
namespace {

PlanTemplate scale_plan() {
  PlanTemplate plan;
  plan.constraints = {"N >= VECTOR"};
  ParameterTemplate x{"x", ParameterSource::Buffer, DType::F32, Role::In, "N", 16, "", {"N"}, "", ""};
  plan.launches = {{"scale<float>", "_Z5scale", {"cdiv(N, 128)"}, {"128"}, "0", {x}}};
  plan.static_shared_bytes = 64;
  return plan;
}

Digest changed(const std::function<void(PlanTemplate&)>& change) {
  PlanTemplate plan = scale_plan();
  change(plan);
  return launch_digest(plan);
}

}  // namespace

TEST_CASE("the digest of launches stays what earlier bundles were signed for") {
  CHECK(launch_digest(scale_plan()).hex() ==
        "589819bdb0a4649e2d282e1b8c5d5d61a8e66db7bb16a674a102d33107146148");
}

TEST_CASE("each member of a launch changes the digest of launches") {
  const auto parameter = [](const std::function<void(ParameterTemplate&)>& change) {
    return changed([&](PlanTemplate& plan) { change(plan.launches[0].parameters[0]); });
  };
  const auto map = [&](const std::function<void(TensorMapTemplate&)>& change) {
    return parameter([&](ParameterTemplate& x) {
      x.source = ParameterSource::TensorMap;
      change(x.tensor_map);
    });
  };
  const std::vector<Digest> others{
      changed([](PlanTemplate& plan) { plan.constraints.clear(); }),
      changed([](PlanTemplate& plan) { plan.static_shared_bytes = 65; }),
      changed([](PlanTemplate& plan) { plan.launches.push_back(plan.launches[0]); }),
      changed([](PlanTemplate& plan) { plan.launches[0].entry = "scale<double>"; }),
      changed([](PlanTemplate& plan) { plan.launches[0].entry_symbol = "_Z4copy"; }),
      changed([](PlanTemplate& plan) { plan.launches[0].grid[0] = "N"; }),
      changed([](PlanTemplate& plan) { plan.launches[0].block[0] = "256"; }),
      changed([](PlanTemplate& plan) { plan.launches[0].shared_bytes = "4"; }),
      changed([](PlanTemplate& plan) { plan.launches[0].cluster = {"2"}; }),
      changed([](PlanTemplate& plan) { plan.launches[0].attributes.cooperative = true; }),
      changed(
          [](PlanTemplate& plan) { plan.launches[0].attributes.programmatic_stream_serialization = true; }),
      changed([](PlanTemplate& plan) { plan.launches[0].attributes.priority = -1; }),
      parameter([](ParameterTemplate& x) { x.name = "y"; }),
      parameter([](ParameterTemplate& x) { x.source = ParameterSource::Caller; }),
      parameter([](ParameterTemplate& x) { x.type = DType::F16; }),
      parameter([](ParameterTemplate& x) { x.role = Role::Out; }),
      parameter([](ParameterTemplate& x) { x.extent = "2 * N"; }),
      parameter([](ParameterTemplate& x) { x.align_bytes = 4; }),
      parameter([](ParameterTemplate& x) { x.value = "N"; }),
      parameter([](ParameterTemplate& x) {
        x.shape = {"N", "1"};
      }),
      parameter([](ParameterTemplate& x) { x.variable = "filter"; }),
      parameter([](ParameterTemplate& x) { x.symbol = "filter"; }),
      parameter([](ParameterTemplate& x) { x.source = ParameterSource::TensorMap; }),
      map([](TensorMapTemplate& x) { x.argument = "x_map"; }),
      map([](TensorMapTemplate& x) { x.type = TensorMapType::F32; }),
      map([](TensorMapTemplate& x) { x.nan_fill = true; }),
      map([](TensorMapTemplate& x) { x.sizes = {"N"}; }),
      map([](TensorMapTemplate& x) { x.strides = {"N"}; }),
      map([](TensorMapTemplate& x) { x.box = {"N"}; }),
      map([](TensorMapTemplate& x) { x.element_strides = {"N"}; }),
      map([](TensorMapTemplate& x) { x.modes[1] = "N"; })};
  CHECK(std::set(others.begin(), others.end()).size() == others.size());
  for (const Digest& other : others) {
    CHECK(other != launch_digest(scale_plan()));
  }
}

}  // namespace cubind
