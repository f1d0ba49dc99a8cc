#include "tuner/agent/tuning/tune_job.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "tuner/agent/compile/compile_source.hpp"
#include "tuner/agent/tuning/final_stage.hpp"
#include "tuner/agent/tuning/job_input.hpp"
#include "tuner/agent/tuning/job_progress.hpp"
#include "tuner/agent/tuning/job_result.hpp"
#include "tuner/agent/tuning/memory_refusal.hpp"
#include "tuner/agent/tuning/row_invariance.hpp"
#include "tuner/agent/tuning/same_code.hpp"
#include "tuner/agent/tuning/screen_stage.hpp"
#include "tuner/agent/tuning/trial_bench.hpp"
#include "tuner/agent/tuning/trial_device.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/agent/tuning/winner_check.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

v1::JobResult failed(const std::string& error) {
  v1::JobResult result;
  result.set_status(v1::JobResult::FAILED);
  result.set_error(error);
  return result;
}

// Of the finalists that are still right, until one passes its checks at the tails. Absent: none does.
std::optional<std::size_t> choose_verified(std::vector<Finalist>& finalists, const TrialBench& bench,
                                           WinnerCheck& check, const RoundContext& context) {
  std::erase_if(finalists, [&](const Finalist& one) { return !check.passes_where_timed(*one.candidate); });
  while (const auto choice = choose_finalist(finalists, bench, context)) {
    if (check.passes_at_tails(*finalists[*choice].candidate)) {
      return choice;
    }
    finalists.erase(finalists.begin() + static_cast<std::ptrdiff_t>(*choice));
  }
  return std::nullopt;
}

const Finalist* find_default(const std::vector<Finalist>& finalists) {
  const auto found =
      std::ranges::find_if(finalists, [](const Finalist& one) { return one.candidate->is_default; });
  return found == finalists.end() ? nullptr : &*found;
}

// A winner so far that runs the default's code owes its place to chance: the default is served.
void prefer_default(Candidates& candidates, TrialBench& bench, SameCode& same_code) {
  const Candidate* incumbent = candidates.incumbent();
  if (!incumbent || incumbent->is_default) {
    return;
  }
  bench.want(*incumbent);
  const bool are_compiled =
      bench.compile(candidates.preset()) == Attempt::Done && bench.compile(*incumbent) == Attempt::Done;
  if (are_compiled && &same_code.measured_for(candidates.preset()) == &candidates.preset() &&
      &same_code.measured_for(*incumbent) == &candidates.preset()) {
    candidates.prefer_default();
  }
}

// What runs the same code has ended alike.
void share_results(const SameCode& same_code, TrialBench& bench) {
  for (const auto& [candidate, measured] : same_code.shared()) {
    bench.share(*candidate, *measured);
  }
  bench.commit();
}

// What was measured before a job is handed back is kept.
template <typename Body>
auto keeping_results(TrialLog& log, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled) {
      log.commit();
      log.settle();
    }
    throw;
  }
}

MeasureSettings settings_of(const v1::LeaseGrant& lease, MeasureSettings settings) {
  if (lease.rounds() > 0) {
    settings.min_samples = settings.max_samples = lease.rounds();
  }
  return settings;
}

// The next job waits while a source hangs.
DeviceDeadlines deadlines_of(const v1::LeaseGrant& lease, DeviceDeadlines deadlines) {
  constexpr std::chrono::milliseconds kUntrustedRun{1200};
  if (lease.untrusted()) {
    deadlines.run = std::min(deadlines.run, kUntrustedRun);
  }
  return deadlines;
}

}  // namespace

TuneJob::TuneJob(Parts parts, Options options) : parts_(parts), options_(std::move(options)) {}

v1::JobResult TuneJob::run(const v1::LeaseGrant& lease) {
  try {
    return search(lease);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled || error.code() == ErrorCode::Aborted) {
      throw;
    }
    v1::JobResult result;
    const bool lost = error.code() == ErrorCode::Unavailable;
    result.set_status(lost ? v1::JobResult::INTERRUPTED : v1::JobResult::FAILED);
    result.set_error(error.what());
    return result;
  }
}

v1::JobResult TuneJob::search(const v1::LeaseGrant& lease) {
  parts_.stop.check_between_trials();
  const auto kept = parts_.builds.of(lease.spec());
  const KernelBuild& build = *kept;
  RemoteDevice remote(parts_.device, options_.open, parts_.stop, deadlines_of(lease, options_.deadlines),
                      options_.lend);
  JobProgress progress(parts_.channel, parts_.clock);
  progress.stage("compiling");
  progress.timed_stage("opening");
  ConsentGate consent({options_.when, lease.only_when_idle(), options_.idle_poll}, remote, progress,
                      parts_.stop);
  consent.enter();
  progress.timed_stage("choosing");
  JobInput input = make_job_input(lease, build.spec(), remote.info(), [this] { parts_.stop.check(); });
  const MemoryRefusal memory(lease, input, remote.info());
  if (auto refused = memory.foreseen()) {
    return *std::move(refused);
  }
  try {
    v1::JobResult result = measure(lease, input, build, {remote, progress, consent});
    *result.mutable_stages() = progress.stages();
    if (remote.is_lent()) {
      remote.release_all();  // the lender goes on with the result, and may want the memory at once
    }
    remote.leave_open();
    return result;
  } catch (const OutOfDeviceMemory& error) {
    return memory.met(error.what());
  }
}

v1::JobResult TuneJob::measure(const v1::LeaseGrant& lease, JobInput& input, const KernelBuild& build,
                               const OnDevice& on) {
  auto& [remote, progress, consent] = on;
  const MeasureSettings settings = settings_of(lease, options_.settings);
  CompileSource artifacts(parts_.compiles, parts_.channel, parts_.stop, lease.artifacts());
  TrialDevice device(input, build, artifacts, remote, consent);
  if (input.spec->triton) {
    progress.timed_stage("compiling");
    input.preset = device.launchable_default(options_.compile_window);
  }
  device.want_reference();
  if (remote.info().timer().empty()) {
    device.make_ready();
  }
  TrialLog log(lease, input, {remote.info().timer(), consent.gives_way()}, artifacts, parts_.channel,
               parts_.clock);
  std::optional<RowInvariance> rows;
  if (wants_row_invariance(input)) {
    rows.emplace(input, build, artifacts, device);
  }
  TrialBench bench(input, artifacts, device, log, rows ? &*rows : nullptr, settings);
  bench.learn_tick(remote.info().tick_us());

  Candidates candidates(input, build);
  SameCode same_code(log, artifacts);
  prefer_default(candidates, bench, same_code);
  Proposals proposals(input, candidates, parts_.clock,
                      {options_.compile_window, [&](const Candidate& one) { bench.want(one); },
                       [&](const Candidate& one) { return bench.is_known(one); }});
  progress.total(static_cast<std::uint32_t>(std::min<std::uint64_t>(proposals.expected(), UINT32_MAX)));
  ScreenStage screen(input, proposals, bench, same_code, progress, artifacts, parts_.stop, settings);
  const std::vector<const Candidate*> chosen = keeping_results(log, [&] { return screen.run(); });
  if (options_.on_device) {
    options_.on_device(remote.info());
  }
  const RoundContext context{input.job_key, bench.tick_us(), settings};
  FinalStage final_stage(bench, log, progress, parts_.stop, context);
  std::vector<Finalist> finalists = keeping_results(log, [&] { return final_stage.run(chosen); });
  progress.stage("verifying");
  WinnerCheck check(input, bench);
  const auto choice = keeping_results(log, [&] { return choose_verified(finalists, bench, check, context); });
  share_results(same_code, bench);
  progress.stage("commit");
  progress.nvrtc_calls(artifacts.nvrtc_calls());
  progress.send();
  failpoint("agent.commit");
  log.settle();
  v1::JobResult result;
  if (choice) {
    const Decision decision{finalists, *choice, find_default(finalists), check.problems()};
    result = make_job_result(input, decision, log, context, remote.info(), parts_.clock);
  } else {
    result = failed(why_none_survived(proposals, bench, log));
  }
  describe_search(proposals, bench, result);
  return result;
}

}  // namespace cubind
