#include <catch2/catch.hpp>

#include "plan/compiled_plan.hpp"
#include "tests/support/facts.hpp"

namespace cubind {

TEST_CASE("entries and variables of a plan get the symbols of their name expressions") {
  PlanTemplate plan;
  plan.launches.resize(2);
  plan.launches[0].entry = "conv<float>";
  plan.launches[1].entry = "other";
  ParameterTemplate filter;
  filter.source = ParameterSource::Symbol;
  filter.variable = "filter<float>";
  plan.launches[0].parameters = {ParameterTemplate{}, filter};
  const PlanTemplate named =
      as_compiled(plan, {"conv<float>", "&filter<float>"}, {"_Z4convIfEvPT_", "_Z6filterIfE"}, {});
  CHECK(named.launches[0].entry_symbol == "_Z4convIfEvPT_");
  CHECK(named.launches[0].parameters[0].symbol.empty());
  CHECK(named.launches[0].parameters[1].symbol == "_Z6filterIfE");
  CHECK(named.launches[1].entry_symbol.empty());
}

TEST_CASE("the shared memory that a compiler decided is added to the launches of its entry") {
  std::vector<EntryResources> resources{test::resources_of("rows", 32),
                                        test::resources_of("others", 32, 512)};
  resources[0].set_launch_shared_bytes(4096);
  LaunchPlan plan;
  plan.launches = {{"rows[0]", "", {}, {}, 16, {}}, {"others[0]", "", {}, {}, 16, {}}};
  const LaunchPlan launched = as_compiled(plan, {"rows[0]", "others[0]"}, {"rows", "others"}, resources);
  CHECK(launched.launches[0].shared_bytes == 4112);
  CHECK(launched.launches[1].shared_bytes == 16);
}

TEST_CASE("a template evaluates to the plan that is launched and knows the static shared memory") {
  std::vector<EntryResources> resources{test::resources_of("rows", 32, 512)};
  resources[0].set_launch_shared_bytes(4096);
  const Problem problem{{{"N", 8}}, {}, {}, ""};
  PlanTemplate plan;
  plan.launches = {{"rows[0]", "", {"1"}, {"32"}, "N > 4 ? 2 * N : N", {}}};
  plan = as_compiled(plan, {"rows[0]"}, {"rows"}, resources);
  CHECK(plan.static_shared_bytes == 512);
  const PlanEvaluator fits(plan, problem, {}, {.shared_optin = 4624});
  CHECK(fits.evaluate(problem, {}).plan.value().launches[0].shared_bytes == 4112);
  const PlanEvaluator too_small(plan, problem, {}, {.shared_optin = 4623});
  CHECK_FALSE(too_small.evaluate(problem, {}).plan);
}

}  // namespace cubind
