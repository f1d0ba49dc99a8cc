#include "tuner/worker/module_state.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/device_worker/host_driver.hpp"

namespace cubind::worker {
namespace {

TEST_CASE("what launches have left in a module's variables is gone when they are restored") {
  DriverContext context("", test::make_host_driver());
  MemoryBudget budget(context.api(), 1 << 20);
  const LoadedModule module(context.api(), "cubin", {}, "a test");
  const auto set_first = [&](const char* name, float value) {
    *reinterpret_cast<float*>(module.variable(name).address) = value;  // NOLINT: the host's memory
  };
  set_first("table", 1);
  const ModuleState state(context, budget, module, {"table", "kept"});
  set_first("table", 2);
  set_first("kept", 3);
  state.restore();
  CHECK(test::variable("table").at(0) == 1);
  CHECK(test::variable("kept").at(0) == 0);
}

}  // namespace
}  // namespace cubind::worker
