#include "tuner/spec/space_thinning.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "tuner/space/configuration_space.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/space_checks.hpp"

namespace cubind {
namespace {

// A space is made for each condition in turn: what a person waits for is counted with less effort than what a
// search needs.
constexpr SpaceLimits kWalkLimits{.max_edges = 500'000, .max_draws = 0};
constexpr std::uint64_t kMostThinningSteps = 5'000'000;  // over all conditions

enum class Counted { Yes, Faults, TooTangled };

Counted count(const KernelSpec& spec, const std::vector<Check>& checks, const Interrupt& interrupt,
              std::uint64_t& left) {
  try {
    left = ConfigurationSpace(axes_of(spec), checks, kWalkLimits, interrupt).count();
    return Counted::Yes;
  } catch (const Error& error) {
    if (error.where() != "space" && !error.where().starts_with("/")) {
      throw;  // of the interrupt
    }
    return error.code() == ErrorCode::InvalidArgument ? Counted::Faults : Counted::TooTangled;
  }
}

/// Why the last of the checks rejects the first configuration that the others leave and it does not; empty
/// where that is not found soon.
std::string first_rejection(const KernelSpec& spec, const std::shared_ptr<const SpaceChecks>& all,
                            std::vector<Check> checks, const Interrupt& interrupt) {
  const std::size_t last = checks.size() - 1;
  checks[last].holds = [all, last](std::span<const std::int64_t> tunables) {
    return !all->holds(last, tunables);
  };
  try {
    const ConfigurationSpace rejected(axes_of(spec), std::move(checks), kWalkLimits, interrupt);
    const Point point = rejected.point(0);
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < point.size(); ++i) {
      values.push_back(rejected.axes()[i].values[point[i]]);
    }
    return all->describe(last, values);
  } catch (const Error& error) {
    if (error.where() != "space" && !error.where().starts_with("/")) {
      throw;  // of the interrupt
    }
    return "";
  }
}

}  // namespace

std::vector<Thinning> thin_out(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                               const Interrupt& interrupt) {
  const auto all = std::make_shared<const SpaceChecks>(spec, problem, device);
  std::vector<Thinning> steps;
  std::vector<Check> checks;
  std::uint64_t left = 0;
  std::uint64_t looked_at = 0;
  const Interrupt within_limit = [&] {
    ask(interrupt);
    looked_at += kBetweenInterrupts;
    if (looked_at > kMostThinningSteps) {
      throw Error(ErrorCode::ResourceExhausted, "space", "takes too long to be counted");
    }
  };
  if (count(spec, checks, within_limit, left) != Counted::Yes) {
    return steps;
  }
  for (std::size_t i = 0; i < all->count() && left > 0; ++i) {
    checks.push_back(check_of(all, i));
    const std::uint64_t before = left;
    const Counted counted = count(spec, checks, within_limit, left);
    if (counted == Counted::TooTangled) {
      break;
    }
    const bool is_constraint = i < spec.constraints.size();
    if (counted == Counted::Yes && (is_constraint || left < before)) {
      auto [where, condition] = all->name(i);
      if (!is_constraint) {
        const std::string why = first_rejection(spec, all, checks, within_limit);
        condition += why.empty() ? "" : " (" + why + ")";
      }
      steps.push_back({std::move(where), std::move(condition), before - left, left});
    }
  }
  return steps;
}

std::string what_leaves_none(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                             const Interrupt& interrupt) {
  const std::vector<Thinning> steps = thin_out(spec, problem, device, interrupt);
  if (steps.empty() || steps.back().left > 0) {
    return "";
  }
  return steps.back().where + ": " + steps.back().condition;
}

}  // namespace cubind
