#include "tuner/agent/screen_stage.hpp"

#include <algorithm>

#include "tuner/measure/margins.hpp"

namespace cubind {

ScreenStage::ScreenStage(const JobInput& input, TrialBench& bench, JobProgress& progress,
                         const CompileSource& artifacts, Options options)
    : input_(input), bench_(bench), progress_(progress), artifacts_(artifacts), options_(options) {}

void ScreenStage::run_ahead(std::size_t position) {
  const std::size_t end = std::min(input_.candidates.size(), position + options_.compile_window);
  for (; wanted_ < end; ++wanted_) {
    bench_.want(input_.candidates[wanted_]);
  }
}

Attempt ScreenStage::screen(const Candidate& candidate) {
  std::vector<double> samples;
  for (std::size_t position = 0;; ++position) {
    const ScreenStep step =
        screen_step({samples, best_us_, bench_.tick_us(), candidate.must_compete()}, options_.settings);
    if (step.verdict == ScreenVerdict::Hopeless) {
      return Attempt::Done;
    }
    if (step.verdict == ScreenVerdict::Survivor) {
      break;
    }
    progress_.phase("screening");
    TrialBench::Screen block = bench_.screen(candidate, position, step.samples, best_us_.value_or(0));
    if (block.attempt != Attempt::Done) {
      return block.attempt;
    }
    samples.insert(samples.end(), block.samples_us.begin(), block.samples_us.end());
  }
  const double value = screen_value_us(samples, bench_.tick_us(), options_.settings);
  const auto position = static_cast<std::size_t>(&candidate - input_.candidates.data());
  screened_.push_back({position, value, candidate.must_compete()});
  best_us_ = std::min(best_us_.value_or(value), value);
  progress_.best(*best_us_);
  return Attempt::Done;
}

Attempt ScreenStage::try_one(const Candidate& candidate) {
  progress_.phase("compiling");
  const Attempt compiled = bench_.compile(candidate);
  progress_.nvrtc_calls(artifacts_.nvrtc_calls());
  if (compiled != Attempt::Done) {
    return compiled;
  }
  progress_.phase("verifying");
  const DeviceSetup main{DeviceSetup::kMain, input_.problem, candidate.plan};
  const Attempt verified = bench_.verify(candidate, main, false);
  if (verified != Attempt::Done) {
    return verified;
  }
  const Attempt screened = screen(candidate);
  bench_.commit();
  return screened;
}

void ScreenStage::one(const Candidate& candidate) {
  // A fault that is on record waits for its repetition where it would wait in a job that was never
  // interrupted.
  const Attempt attempt = bench_.has_faulted(candidate) ? Attempt::Deferred : try_one(candidate);
  if (attempt == Attempt::Deferred) {
    deferred_.push_back(&candidate);
    return;
  }
  bench_.put_away(candidate);
  progress_.done(++done_);
}

void ScreenStage::again(const Candidate& candidate) {
  while (true) {
    bench_.make_fresh_for(candidate);
    if (try_one(candidate) != Attempt::Deferred) {
      break;
    }
  }
  bench_.put_away(candidate);
  progress_.done(++done_);
}

std::vector<const Candidate*> ScreenStage::run() {
  for (std::size_t i = 0; i < input_.candidates.size(); ++i) {
    run_ahead(i);
    one(input_.candidates[i]);
  }
  for (const Candidate* candidate : deferred_) {
    again(*candidate);
  }
  std::erase_if(screened_, [this](const Screened& one) {
    return bench_.outcome(input_.candidates[one.candidate]).has_value();
  });
  std::vector<const Candidate*> finalists;
  for (const std::size_t position : choose_finalists(screened_, bench_.tick_us(), options_.settings)) {
    finalists.push_back(&input_.candidates[position]);
  }
  return finalists;
}

}  // namespace cubind
