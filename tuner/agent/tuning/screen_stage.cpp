#include "tuner/agent/tuning/screen_stage.hpp"

#include <algorithm>

#include "base/failpoint.hpp"
#include "tuner/measure/margins.hpp"

namespace cubind {

ScreenStage::ScreenStage(const JobInput& input, Proposals& proposals, TrialBench& bench, SameCode& same_code,
                         JobProgress& progress, const CompileSource& artifacts, const JobStop& stop,
                         MeasureSettings settings)
    : input_(input),
      proposals_(proposals),
      bench_(bench),
      same_code_(same_code),
      progress_(progress),
      artifacts_(artifacts),
      stop_(stop),
      settings_(settings) {}

Attempt ScreenStage::verify(const Candidate& candidate) {
  progress_.stage("verifying");
  failpoint("agent.verify");
  return bench_.verify(candidate, {DeviceSetup::kMain, input_.problem, candidate.plan}, false);
}

// Verifying costs a multiple of one sample: a trial whose first sample is hopeless is not verified, and the
// best that the others are judged against is always one that was.
Attempt ScreenStage::screen(const Candidate& candidate) {
  std::vector<double> samples;
  for (std::size_t position = 0;; ++position) {
    const ScreenStep step =
        screen_step({samples, best_us_, bench_.tick_us(), candidate.must_compete()}, settings_);
    if (step.verdict == ScreenVerdict::Hopeless) {
      return Attempt::Done;
    }
    if (const Attempt verified = position == 1 ? verify(candidate) : Attempt::Done;
        verified != Attempt::Done) {
      return verified;
    }
    if (step.verdict == ScreenVerdict::Survivor) {
      break;
    }
    progress_.stage("screening");
    failpoint("agent.screen");
    TrialBench::Screen block = bench_.screen(candidate, position, step.samples, best_us_.value_or(0));
    if (block.attempt != Attempt::Done) {
      return block.attempt;
    }
    samples.insert(samples.end(), block.samples_us.begin(), block.samples_us.end());
  }
  const double value = screen_value_us(samples, bench_.tick_us(), settings_);
  screened_.push_back({survivors_.size(), value, candidate.must_compete()});
  survivors_.push_back(&candidate);
  best_us_ = std::min(best_us_.value_or(value), value);
  progress_.best(*best_us_);
  return Attempt::Done;
}

// Absent: the trial is to be measured.
std::optional<Attempt> ScreenStage::compile(const Candidate& candidate) {
  progress_.stage("compiling");
  failpoint("agent.compile");
  const Attempt compiled = bench_.compile(candidate);
  progress_.nvrtc_calls(artifacts_.nvrtc_calls());
  if (compiled != Attempt::Done) {
    return compiled;
  }
  if (const Candidate& measured = same_code_.measured_for(candidate); &measured != &candidate) {
    bench_.share(candidate, measured);
    bench_.commit_meanwhile();
    return Attempt::Done;
  }
  return std::nullopt;
}

Attempt ScreenStage::measure(const Candidate& candidate) {
  const Attempt screened = screen(candidate);
  bench_.commit_meanwhile();
  return screened;
}

void ScreenStage::put_away(const Candidate& candidate) {
  bench_.put_away(candidate);
  progress_.done(++done_);
}

// Of one that was tried to its end.
std::optional<double> ScreenStage::observed_us(const Candidate& candidate) {
  const Candidate& measured = same_code_.measured_for(candidate);
  return bench_.outcome(measured) ? std::nullopt : bench_.observed_us(measured);
}

// A fault that is on record waits for its repetition where it would wait in a job that was never interrupted.
void ScreenStage::one(const Candidate& candidate) {
  const auto compiled = compile(candidate);
  const Attempt attempt = compiled                        ? *compiled
                          : bench_.has_faulted(candidate) ? Attempt::Deferred
                                                          : measure(candidate);
  const auto time_us = attempt == Attempt::Done ? observed_us(candidate) : std::nullopt;
  proposals_.observe(candidate, time_us ? Outcome::Correct : Outcome::Runtime, time_us);
  if (attempt == Attempt::Deferred) {
    deferred_.push_back(&candidate);
  } else {
    put_away(candidate);
  }
}

void ScreenStage::again(const Candidate& candidate) {
  stop_.check_between_trials();
  do {
    bench_.make_fresh_for(candidate);
  } while (measure(candidate) == Attempt::Deferred);
  put_away(candidate);
}

const Candidate* ScreenStage::next() {
  stop_.check_between_trials();
  progress_.timed_stage("choosing");
  return proposals_.next();
}

std::vector<const Candidate*> ScreenStage::run() {
  while (const Candidate* candidate = next()) {
    one(*candidate);
  }
  for (const Candidate* candidate : deferred_) {
    again(*candidate);
  }
  bench_.commit();
  progress_.total(done_);
  std::erase_if(screened_, [this](const Screened& one) {
    return bench_.outcome(*survivors_[one.candidate]).has_value();
  });
  std::vector<const Candidate*> finalists;
  for (const std::size_t index : choose_finalists(screened_, bench_.tick_us(), settings_)) {
    finalists.push_back(survivors_[index]);
  }
  return finalists;
}

}  // namespace cubind
