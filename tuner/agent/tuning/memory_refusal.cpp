#include "tuner/agent/tuning/memory_refusal.hpp"

#include <algorithm>

#include "plan/wire.hpp"
#include "tuner/agent/device/prepare_request.hpp"
#include "tuner/search/fitting_problem.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind {
namespace {

// Of a reference kernel; without symbols, for the buffers that it uses.
ReferenceLaunch reference_of(const JobInput& input, const Problem& problem) {
  ReferenceLaunch reference{"default", "", {}};
  if (input.spec->reference.kind != ReferenceSpec::Kind::Kernel) {
    return reference;
  }
  reference.kind = "kernel";
  const PlanEvaluator evaluator(input.spec->reference_template(problem), problem, {}, input.constants);
  reference.plan = evaluator.evaluate(problem, {}).plan.value_or(LaunchPlan{});
  return reference;
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

std::optional<std::uint64_t> needed_bytes(const JobInput& input, const Problem& problem) {
  const auto plan = buffers_plan(input, problem);
  if (!plan) {
    return std::nullopt;
  }
  return verify::trial_bytes(make_prepare_request(input, 0, problem, {&*plan}, reference_of(input, problem)),
                             input.facts.l2_bytes());
}

MemoryRefusal::MemoryRefusal(const v1::LeaseGrant& lease, const JobInput& input, const v1::DeviceInfo& device)
    : input_(input), limit_(device.memory_limit_bytes()), for_bucket_(lease.for_bucket()) {}

std::optional<v1::JobResult> MemoryRefusal::foreseen() const {
  if (!for_bucket_ || limit_ == 0) {
    return std::nullopt;
  }
  const std::uint64_t need = needed_bytes(input_, input_.problem).value_or(0);
  if (need <= limit_) {
    return std::nullopt;
  }
  return result(need, limit_,
                input_.spec->name + " at " + to_string(input_.problem) +
                    ": out of device memory: " + bytes_text(need) + " are needed and trials may use " +
                    bytes_text(limit_) + " (--memory-fraction)");
}

v1::JobResult MemoryRefusal::met(const std::string& error) const {
  const std::uint64_t need = needed_bytes(input_, input_.problem).value_or(1);
  v1::JobResult refused = result(need, limit_ == 0 ? need - 1 : std::min(limit_, need - 1), error);
  if (limit_ > 0) {
    refused.set_needs_bytes(memory_to_wait_for(refused.needs_bytes(), limit_));
  }
  return refused;
}

v1::JobResult MemoryRefusal::result(std::uint64_t need, std::uint64_t limit, const std::string& error) const {
  v1::JobResult result;
  result.set_status(v1::JobResult::FAILED);
  result.set_error(error);
  result.set_needs_bytes(need);
  if (!for_bucket_) {
    return result;
  }
  std::optional<std::pair<Problem, std::uint64_t>> smallest;
  const auto fits = [&](const Problem& problem) {
    const auto bytes = needed_bytes(input_, problem);
    if (bytes) {
      smallest = {problem, *bytes};
    }
    return bytes && *bytes <= limit;
  };
  if (const auto smaller = fitting_problem(*input_.spec, input_.problem, fits)) {
    result.set_status(v1::JobResult::SMALLER);
    to_wire(*smaller, *result.mutable_smaller_problem());
  } else if (smallest) {
    result.set_needs_bytes(smallest->second);
    result.set_error(error + "; of its bucket " + to_string(smallest->first) + " still needs " +
                     bytes_text(smallest->second));
  }
  return result;
}

std::uint64_t memory_to_wait_for(std::uint64_t needs, std::uint64_t allowed) {
  return needs > allowed ? needs : 0;
}

}  // namespace cubind
