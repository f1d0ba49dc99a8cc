#include "tuner/agent/tuning/winner_check.hpp"

#include "base/log.hpp"
#include "tuner/search/tails.hpp"

namespace cubind {

bool WinnerCheck::passes_at(const Candidate& candidate, const DeviceSetup& setup) {
  Attempt attempt = Attempt::Deferred;
  while (attempt == Attempt::Deferred) {
    bench_.make_fresh_for(candidate);
    attempt = bench_.verify(candidate, setup, true);
  }
  bench_.commit();
  if (attempt == Attempt::Done) {
    problems_.push_back(setup.problem);
  }
  return attempt == Attempt::Done;
}

bool WinnerCheck::passes_where_timed(const Candidate& candidate) {
  return passes_at(candidate, {DeviceSetup::kMain, input_.problem, candidate.plan});
}

bool WinnerCheck::passes_at_tails(const Candidate& candidate) {
  problems_ = {input_.problem};
  const auto plan_at = [&](const Problem& problem) {
    return plan_for(*input_.spec, problem, candidate.configuration, input_.constants);
  };
  const auto usable = [&](const Problem& problem) {
    const auto plan = plan_at(problem);
    return plan && !plan->launches.empty();
  };
  std::uint32_t number = DeviceSetup::kMain;
  for (const Problem& problem :
       tail_problems(*input_.spec, input_.problem, candidate.configuration, usable)) {
    const DeviceSetup setup{++number, problem, plan_at(problem).value()};
    bool passed = true;
    try {
      passed = passes_at(candidate, setup);
    } catch (const OutOfDeviceMemory& error) {
      log_warning("a tail is not verified: " + std::string(error.what()));
    }
    bench_.release(setup);
    if (!passed) {
      return false;
    }
  }
  return true;
}

}  // namespace cubind
