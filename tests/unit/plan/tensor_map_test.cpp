#include "plan/tensor_map.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "base/error.hpp"
#include "plan/plan_program.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {
namespace {

// x[N][D] of bf16, copied in boxes of ROWS x 64.
PlanTemplate plan_of_map() {
  ParameterTemplate x{"x", ParameterSource::TensorMap, DType::Bf16, Role::In, "N*D", 16, ""};
  x.tensor_map = {.argument = "x_map",
                  .type = TensorMapType::Bf16,
                  .sizes = {"D", "N"},
                  .box = {"64", "ROWS"},
                  .modes = {"128", "0", "256"}};
  LaunchTemplate launch{"copy", "", {"N"}, {"128"}};
  launch.parameters = {x};
  PlanTemplate plan;
  plan.launches = {launch};
  return plan;
}

using EditMap = std::function<void(TensorMapTemplate&)>;

PlanResult evaluated(const PlanTemplate& plan, std::int64_t rows = 32, std::int64_t capability = 90,
                     std::int64_t n = 1000) {
  const Problem problem{{{"N", n}, {"D", 4096}}, {{"T", DType::Bf16}}, {}, ""};
  const Configuration configuration{{{"ROWS", rows}}};
  return PlanEvaluator(plan, problem, configuration, {132, 232448, 62914560, capability})
      .evaluate(problem, configuration);
}

std::string violation(const EditMap& edit) {
  PlanTemplate plan = plan_of_map();
  edit(plan.launches[0].parameters[0].tensor_map);
  const PlanResult result = evaluated(plan);
  CHECK(result.plan.has_value() == result.violation.empty());
  return result.violation;
}

Catch::Matchers::StdString::StartsWithMatcher begins(const std::string& text) {
  return Catch::StartsWith("/arguments/x_map" + text);
}

}  // namespace

TEST_CASE("a tensor map has the numbers of its problem and dense strides unless it gives others") {
  PlanTemplate plan = plan_of_map();
  const TensorMap map = evaluated(plan).plan.value().launches[0].parameters[0].tensor_map;
  CHECK(to_string(map) == "bf16 [4096, 1000], strides [8192], box [64, 32], swizzle 128B, L2 promotion 256B");
  TensorMapTemplate& edited = plan.launches[0].parameters[0].tensor_map;
  edited.sizes = {"D / 2", "N"};
  edited.strides = {"D * sizeof(T)"};
  edited.element_strides = {"1", "2"};
  edited.nan_fill = true;
  CHECK(to_string(evaluated(plan).plan.value().launches[0].parameters[0].tensor_map) ==
        "bf16 [2048, 1000], strides [8192], box [64, 32], element strides [1, 2], swizzle 128B, L2 promotion "
        "256B, fill nan");
}

TEST_CASE("a tensor map that the hardware does not take is refused at its place in the spec") {
  const auto set = [](std::vector<std::string> TensorMapTemplate::*list, std::size_t index,
                      const char* text) {
    return violation([&](TensorMapTemplate& map) { (map.*list)[index] = text; });
  };
  CHECK_THAT(set(&TensorMapTemplate::box, 1, "ROWS * 10"),
             begins("/box/1: 320 is not from 1 to 256 where") && Catch::Contains("ROWS = 32"));
  CHECK_THAT(set(&TensorMapTemplate::box, 1, "0"), begins("/box/1: 0 is not from 1 to 256"));
  CHECK_THAT(set(&TensorMapTemplate::box, 0, "60"),
             begins("/box/0: 60 elements of bf16 are 120 bytes, not a"));
  CHECK_THAT(set(&TensorMapTemplate::box, 0, "128"),
             begins("/box/0: 128 elements of bf16 are 256 bytes, more than the swizzle's 128: give the box"));
  CHECK_THAT(set(&TensorMapTemplate::sizes, 0, "0"), begins("/sizes/0: 0 is not from 1 to 4294967296"));
  CHECK_THAT(set(&TensorMapTemplate::sizes, 1, "4294967297"), begins("/sizes/1: 4294967297 is not from 1"));
  CHECK_THAT(set(&TensorMapTemplate::sizes, 1, "-1"), begins("/sizes/1: -1 is not from 1"));
  CHECK_THAT(set(&TensorMapTemplate::sizes, 1, "N + 1"),
             begins("/sizes: the tensor reaches beyond the 8192000 bytes of its buffer: bf16 [4096, 1001]"));
  CHECK_THAT(set(&TensorMapTemplate::modes, 0, "48"),
             begins("/swizzle: 48 bytes: it is one of 0, 32, 64, 128"));
  CHECK_THAT(set(&TensorMapTemplate::modes, 1, "8"), begins("/interleave: 8 bytes: it is one of 0, 16, 32"));
  CHECK_THAT(set(&TensorMapTemplate::modes, 1, "16"), begins("/interleave: needs three axes or more"));
  CHECK_THAT(set(&TensorMapTemplate::modes, 2, "32"), begins("/l2_promotion: 32 bytes: it is one of 0, 64"));
}

TEST_CASE("the strides of a tensor map are those that the hardware takes and lead within the buffer") {
  const auto stride = [](const char* text) {
    return violation([&](TensorMapTemplate& map) { map.strides = {text}; });
  };
  CHECK(stride("D * 2").empty());
  CHECK_THAT(stride("D * 2 + 8"), begins("/strides/0: 8200 bytes are not a multiple of 16 below 2^40"));
  CHECK_THAT(stride("-16"), begins("/strides/0: -16 bytes are not a multiple of 16"));
  CHECK_THAT(stride("1099511627776"),
             begins("/strides/0: 1099511627776 bytes are not a multiple of 16 below"));
  CHECK_THAT(stride("D * 2 + 16"), begins("/sizes: the tensor reaches beyond"));
  CHECK_THAT(stride("1099511627760"), begins("/sizes: the tensor reaches beyond"));
  CHECK_THAT(violation([](TensorMapTemplate& map) {
               map.element_strides = {"1", "9"};
             }),
             begins("/element_strides/1: 9 is not from 1 to 8"));
}

TEST_CASE("interleaved slices ask for a swizzle and an alignment of 32 bytes") {
  const auto interleaved = [](const char* swizzle, const char* stride, std::uint32_t align) {
    PlanTemplate plan = plan_of_map();
    ParameterTemplate& x = plan.launches[0].parameters[0];
    x.align_bytes = align;
    x.tensor_map.sizes = {"16", "D / 16", "N"};
    x.tensor_map.strides = {"32", stride};
    x.tensor_map.box = {"16", "8", "8"};
    x.tensor_map.modes = {swizzle, "32", "0"};
    return evaluated(plan).violation;
  };
  CHECK(interleaved("32", "D * 2", 32).empty());
  CHECK_THAT(interleaved("64", "D * 2", 32), begins("/swizzle: 64 bytes: an interleave of 32 bytes needs"));
  CHECK_THAT(interleaved("32", "D * 2 - 16", 32), begins("/strides/1: 8176 bytes are not a multiple of 32"));
  CHECK_THAT(interleaved("32", "D * 2", 16),
             begins(": its buffer is aligned to 16 bytes: give the buffer \"align\": 32"));
}

TEST_CASE("a tensor map needs a GPU that has them and a floating type for NaN") {
  CHECK_THAT(evaluated(plan_of_map(), 32, 89).violation, begins(": GPUs before compute capability 9.0"));
  CHECK_THAT(violation([](TensorMapTemplate& map) {
               map.type = TensorMapType::U16;
               map.nan_fill = true;
             }),
             begins("/fill: u16 has no NaN: \"zeros\""));
  PlanTemplate unaligned = plan_of_map();
  unaligned.launches[0].parameters[0].align_bytes = 8;
  CHECK_THAT(evaluated(unaligned).violation, begins(": its buffer is aligned to 8 bytes: give the buffer"));
}

TEST_CASE("a tensor map of a launch that is left out is not checked") {
  PlanTemplate plan = plan_of_map();
  plan.launches[0].grid = {"N - 1000"};
  CHECK(evaluated(plan, 512).plan.value().launches.empty());
}

TEST_CASE("lists of a tensor map that do not fit together are refused where a plan is made") {
  const auto refusal = [](const EditMap& edit) { return message_of([&] { violation(edit); }); };
  CHECK(refusal([](TensorMapTemplate& map) { map.sizes.clear(); }) ==
        "/arguments/x_map/sizes: 0 axes, a tensor map has one to five");
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.sizes.assign(6, "16"); }), begins("/sizes: 6 axes"));
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.box.pop_back(); }),
             begins("/box: has 1, the sizes ask"));
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.strides.assign(2, "16"); }), begins("/strides: has 2"));
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.element_strides = {"1"}; }),
             begins("/element_strides"));
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.modes.clear(); }), begins("/modes: has 0"));
  CHECK_THAT(refusal([](TensorMapTemplate& map) { map.box[1] = "1 / 0"; }), begins("/box/1: "));
}

TEST_CASE("each type of elements has a type of tensor maps of its size") {
  for (const DType type : {DType::F64, DType::F32, DType::F16, DType::Bf16, DType::E4m3, DType::E5m2,
                           DType::I64, DType::I32, DType::I8, DType::U8}) {
    CHECK(size_of(tensor_map_type(type)) == size_of(type));
  }
  for (const std::string& name : tensor_map_type_names()) {
    CHECK(to_string(parse_tensor_map_type(name).value()) == name);
  }
}

}  // namespace cubind::test
