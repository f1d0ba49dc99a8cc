#include "tuner/worker/profiled_launch.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "launch/entry_symbols.hpp"
#include "plan/wire.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/modes.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {
namespace {

// The driver loads code and the clock rises meanwhile.
constexpr int kWarmUps = 10;

// For what fills need besides the buffers.
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{64} << 20;

v1::LaunchFile read_launch_file(const std::string& path) {
  v1::LaunchFile file;
  if (!file.ParseFromString(read_file(path)) || file.plan().launches().empty()) {
    throw Error(ErrorCode::InvalidArgument, path,
                "is not a file that `cubindctl profile` writes, or one without a launch");
  }
  return file;
}

}  // namespace

void launch_profiled(DriverContext& context, const v1::LaunchFile& file) {
  context.activate();
  MemoryBudget budget(context.api(), verify::memory_share(0, context.free_memory_bytes()));
  OwnKernels kernels(context, budget);
  ProblemSetup setup(context, budget, kernels, file.problem());
  // A profiler saves all memory before it repeats a launch: no room for further copies of the buffers.
  budget.set_limit(budget.taken_bytes() + kWorkspaceBytes);
  const LaunchPlan plan = plan_from_wire(file.plan(), "plan");
  const LoadedModule module(context.api(), file.cubin(), entry_symbols(plan), file.problem().kernel());
  setup.prepare_timing();
  const BoundPlan bound = setup.bind(module, plan);
  const auto restore = [&] {
    setup.restore();
    setup.clear_timed(bound);
    context.synchronize("restoring the buffers");
  };
  for (int i = 0; i < kWarmUps; ++i) {
    restore();
    bound.enqueue(context.stream());
  }
  restore();
  cuda::check(context.api(), context.api().profiler_start(), "cuProfilerStart");
  bound.enqueue(context.stream());
  context.synchronize("the launch");
  cuda::check(context.api(), context.api().profiler_stop(), "cuProfilerStop");
}

ExitCode run_launch(const std::string& path) {
  const v1::LaunchFile file = read_launch_file(path);
  DriverContext context("");
  launch_profiled(context, file);
  return ExitCode::Done;
}

}  // namespace cubind::worker
