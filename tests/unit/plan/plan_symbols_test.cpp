#include <catch2/catch.hpp>

#include "tuner/plan/launch_plan.hpp"

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
      with_symbols(plan, {"conv<float>", "&filter<float>"}, {"_Z4convIfEvPT_", "_Z6filterIfE"});
  CHECK(named.launches[0].entry_symbol == "_Z4convIfEvPT_");
  CHECK(named.launches[0].parameters[0].symbol.empty());
  CHECK(named.launches[0].parameters[1].symbol == "_Z6filterIfE");
  CHECK(named.launches[1].entry_symbol.empty());
}

}  // namespace cubind
