#include "launch/entry_symbols.hpp"

#include <catch2/catch.hpp>

namespace cubind {

TEST_CASE("each entry symbol of a plan comes once in the order of the launches") {
  PlanTemplate plan;
  plan.launches.resize(3);
  plan.launches[0].entry_symbol = "_Z5scale";
  plan.launches[1].entry_symbol = "_Z3sum";
  plan.launches[2].entry_symbol = "_Z5scale";
  CHECK(entry_symbols(plan) == std::vector<std::string>{"_Z5scale", "_Z3sum"});
}

}  // namespace cubind
