#include "tuner/agent/tuning/row_invariance.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cubind {
namespace {

// The smaller sizes, in addition to the measured problem and the tails of its bucket.
constexpr std::uint32_t kFirstSetup = 1u << 16;
// The number of sizes to try for one that the kernel takes.
constexpr std::int64_t kMaxSteps = 4096;
// Above the numbers of the job's candidates.
constexpr std::uint32_t kFirstNumber = 1u << 30;

std::size_t index_of_dim(const JobInput& input) {
  const auto& dims = input.problem.dims;
  const std::string& name = input.numerics.invariant_dim;
  const auto found = std::ranges::find_if(dims, [&](const NamedValue& dim) { return dim.name == name; });
  if (found == dims.end()) {
    throw Error(ErrorCode::InvalidArgument, "lease.numerics.invariant_dim",
                "\"" + name + "\" is not a dim of " + input.spec->name);
  }
  return static_cast<std::size_t>(found - dims.begin());
}

v1::OutputParts rows_of(const LaunchPlan& plan, const std::vector<std::string>& outputs) {
  std::map<std::string, std::uint64_t> elements;
  for (const Launch& launch : plan.launches) {
    for (const Parameter& parameter : launch.parameters) {
      if (std::ranges::find(outputs, parameter.name) == outputs.end()) {
        continue;
      }
      elements[parameter.name] = parameter.extent_bytes / size_of(parameter.type);
    }
  }
  v1::OutputParts rows;
  for (const auto& [output, count] : elements) {
    v1::OutputParts::Part& part = *rows.add_parts();
    part.set_output(output);
    part.set_elements(count);
  }
  return rows;
}

}  // namespace

bool wants_row_invariance(const JobInput& input) {
  if (input.numerics.kind == Numerics::Kind::Invariant && input.replayed) {
    throw Error(ErrorCode::FailedPrecondition, "numerics " + to_string(input.numerics),
                "a recorded table has times and no rows to compare: ask for tolerance, or measure on a GPU");
  }
  return input.numerics.kind == Numerics::Kind::Invariant;
}

RowInvariance::RowInvariance(const JobInput& input, const KernelBuild& build, CompileSource& artifacts,
                             TrialDevice& device)
    : input_(input),
      build_(build),
      artifacts_(artifacts),
      device_(device),
      dim_(index_of_dim(input)),
      next_number_(kFirstNumber) {
  if (input_.spec->outputs_along(input_.numerics.invariant_dim).empty()) {
    fail("no output of " + input_.spec->name + " has rows along it");
  }
}

void RowInvariance::fail(const std::string& cause) const {
  throw Error(ErrorCode::FailedPrecondition, "numerics " + to_string(input_.numerics), cause);
}

RowInvariance::Yardstick& RowInvariance::yardstick(const Problem& problem) {
  const auto [at, added] = yardsticks_.try_emplace(to_string(problem));
  Yardstick& one = at->second;
  if (!added) {
    return one;
  }
  auto candidate = default_at(input_, build_, problem);
  if (!candidate) {
    fail(input_.spec->name + " at " + to_string(problem) + " has no default configuration to compare with");
  }
  one.candidate = *std::move(candidate);
  one.candidate.number = next_number_++;
  one.rows = rows_of(one.candidate.plan, input_.spec->outputs_along(input_.numerics.invariant_dim));
  return one;
}

const v1::OutputParts& RowInvariance::rows_at(const Problem& problem) { return yardstick(problem).rows; }

std::vector<Problem> RowInvariance::smaller_problems(const Problem& problem) {
  const std::int64_t size = problem.dims[dim_].value;
  std::vector<Configuration> defaults = input_.spec->defaults;
  defaults.push_back(yardstick(problem).candidate.configuration);
  const auto has_default = [&](const Problem& one) {
    return std::ranges::any_of(defaults, [&](const Configuration& configuration) {
      const auto plan = plan_for(*input_.spec, one, configuration, input_.constants);
      return plan && !plan->launches.empty();
    });
  };
  std::vector<Problem> result;
  for (const std::int64_t start : {std::int64_t{1}, std::int64_t{7}, size / 2 + 1}) {
    Problem smaller = problem;
    std::int64_t& value = smaller.dims[dim_].value;
    const std::int64_t end = std::min(size, start + kMaxSteps);
    for (value = start; value < end && !has_default(smaller);) {
      ++value;
    }
    if (value < end && std::ranges::find(result, smaller) == result.end()) {
      result.push_back(smaller);
    }
  }
  return result;
}

v1::DeviceReply RowInvariance::run(const Yardstick& yardstick, const DeviceSetup& setup, bool after_timing,
                                   const std::vector<v1::OutputParts>& hashed) {
  const Candidate& candidate = yardstick.candidate;
  const std::string who =
      "the default configuration " + to_string(candidate.configuration) + " at " + to_string(setup.problem);
  const Compiled& compiled = artifacts_.get(device_.wanted(candidate));
  if (compiled.outcome != v1::CORRECT) {
    fail(who + " does not compile: " + compiled.log);
  }
  v1::DeviceReply reply = device_.verify(candidate, setup, after_timing, hashed);
  if (!reply.has_verification() && reply.outcome() != v1::OUT_OF_MEMORY) {
    // A fault counts when it has repeated in a fresh worker.
    device_.restart();
    reply = device_.verify(candidate, setup, after_timing, hashed);
  }
  device_.unload(candidate);
  if (reply.outcome() == v1::OUT_OF_MEMORY) {
    throw OutOfDeviceMemory(who, reply.detail());
  }
  if (reply.outcome() != v1::CORRECT) {
    fail(who + " fails: " + reply.detail());
  }
  if (!reply.verification().same_bits()) {
    fail(who + " has other bits from run to run");
  }
  return reply;
}

std::uint64_t RowInvariance::hash_of(const Problem& smaller, bool after_timing) {
  Yardstick& one = yardstick(smaller);
  const auto known = one.hashes.find(after_timing);
  if (known != one.hashes.end()) {
    return known->second;
  }
  const DeviceSetup setup{kFirstSetup + (one.candidate.number - kFirstNumber), smaller, one.candidate.plan};
  const v1::DeviceReply reply = run(one, setup, after_timing, {one.rows});
  device_.release(setup);
  return one.hashes[after_timing] = reply.hashes(0);
}

std::uint64_t RowInvariance::hash_at(const DeviceSetup& at, bool after_timing) {
  Yardstick& one = yardstick(at.problem);
  const auto known = one.hashes.find(after_timing);
  if (known != one.hashes.end()) {
    return known->second;
  }
  const std::vector<Problem> smaller = smaller_problems(at.problem);
  std::vector<v1::OutputParts> hashed = {one.rows};
  for (const Problem& problem : smaller) {
    hashed.push_back(yardstick(problem).rows);
  }
  const v1::DeviceReply reply = run(one, {at.number, at.problem, one.candidate.plan}, after_timing, hashed);
  for (std::size_t i = 0; i < smaller.size(); ++i) {
    if (hash_of(smaller[i], after_timing) == reply.hashes(static_cast<int>(i) + 1)) {
      continue;
    }
    fail("the default configuration gives the first rows other bits at " + to_string(at.problem) + " (" +
         to_string(one.candidate.configuration) + ") than at " + to_string(smaller[i]) + " (" +
         to_string(yardstick(smaller[i]).candidate.configuration) + "); " + input_.numerics.invariant_dim +
         " has to be the slowest dim of inputs and outputs, and no fill may depend on it");
  }
  return one.hashes[after_timing] = reply.hashes(0);
}

bool RowInvariance::holds(const DeviceSetup& setup, bool after_timing, const v1::DeviceReply& reply) {
  return reply.hashes(0) == hash_at(setup, after_timing);
}

}  // namespace cubind
