#include "tuner/agent/device/prepare_request.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "plan/plan_program.hpp"
#include "plan/wire.hpp"
#include "tuner/agent/tuning/trial_device.hpp"
#include "tuner/spec/problem_arguments.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

bool is_random(const v1::BufferSpec& buffer) {
  const std::string& kind = buffer.fill().kind();
  return (buffer.role() == v1::IN || buffer.role() == v1::INOUT) && buffer.elements() > 0 &&
         kind != to_string(Fill::Kind::Constant) && kind != to_string(Fill::Kind::Iota) &&
         kind != to_string(Fill::Kind::File);
}

}  // namespace

std::optional<LaunchPlan> buffers_plan(const JobInput& input, const Problem& problem) {
  const auto preset = default_configuration(*input.spec, problem, input.constants);
  if (!preset) {
    return std::nullopt;
  }
  const PlanProgram program(input.spec->plan_template(problem, *preset), problem, *preset, input.constants);
  std::vector<std::int64_t> values = program.initial_values();
  program.set_problem(problem, values);
  program.set_configuration(*preset, values);
  return program.plan_of_all(values);
}

v1::PrepareProblem make_prepare_request(const JobInput& input, std::uint32_t setup, const Problem& problem,
                                        const std::vector<const LaunchPlan*>& plans,
                                        const ReferenceLaunch& reference) {
  v1::PrepareProblem request;
  request.set_setup(setup);
  request.set_kernel(input.spec->name);
  to_wire(problem, *request.mutable_problem());
  to_wire(input.policy, *request.mutable_policy());
  std::vector<const LaunchPlan*> all = plans;
  all.push_back(&reference.plan);
  add_arguments(*input.spec, problem, all, input.job_key, request);
  request.set_find_vacuity(setup == DeviceSetup::kMain && std::ranges::any_of(request.buffers(), is_random));
  request.set_reference(reference.kind);
  request.set_reference_cubin(reference.cubin);
  to_wire(reference.plan, *request.mutable_reference_plan());
  const WorkSizes work = input.spec->work_sizes(problem);
  request.set_floor_flops(work.flops.value_or(0));
  request.set_floor_min_read_bytes(work.min_read_bytes.value_or(0));
  return request;
}

std::chrono::milliseconds prepare_time(const v1::PrepareProblem& request) {
  constexpr double kFillBytesPerMs = 1e6;       // 1 GB/s
  constexpr double kOneThreadBytesPerMs = 1e4;  // 10 MB/s
  constexpr double kFlopsPerMs = 25e6;          // 0.1 TFLOP/s, four times: the search for vacuity
  constexpr double kMostOfOneThread = 90'000, kMost = 900'000;
  double bytes = 0;
  for (const v1::BufferSpec& buffer : request.buffers()) {
    bytes += static_cast<double>(buffer.elements()) *
             static_cast<double>(size_of(dtype_from_wire(buffer.type(), "prepare.buffers.type")));
  }
  const bool is_known = request.floor_flops() > 0;
  const double one_thread =
      is_known ? std::min(bytes / kOneThreadBytesPerMs, kMostOfOneThread) : kMostOfOneThread;
  const double all =
      bytes / kFillBytesPerMs + one_thread + static_cast<double>(request.floor_flops()) / kFlopsPerMs;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(all, kMost)));
}

}  // namespace cubind
