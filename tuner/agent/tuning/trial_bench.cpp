#include "tuner/agent/tuning/trial_bench.hpp"

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "tuner/measure/floor.hpp"
#include "tuner/measure/margins.hpp"
#include "tuner/spec/entry_faults.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

// Faults in so many distinct workers count against the configuration.
constexpr std::uint32_t kFaultsThatCount = 2;
constexpr std::uint64_t kFirstRoundSeed = 1000;  // verifications have smaller ones
const std::string kRightAtFirst = "right at its first launch, wrong at a later one: ";

const v1::MeasuredItem* find_item(const v1::DeviceReply& reply, const Candidate& candidate) {
  for (const v1::MeasuredItem& item : reply.measured()) {
    if (item.trial() == candidate.number) {
      return &item;
    }
  }
  return nullptr;
}

}  // namespace

TrialBench::TrialBench(const JobInput& input, CompileSource& artifacts, TrialDevice& device, TrialLog& log,
                       RowInvariance* rows, MeasureSettings settings)
    : input_(input),
      artifacts_(artifacts),
      device_(device),
      log_(log),
      rows_(rows),
      settings_(settings),
      tick_us_(log.stored_tick_us()) {}

void TrialBench::learn_tick(double tick_us) {
  if (tick_us_ <= 0) {
    tick_us_ = tick_us;
  }
}

std::optional<v1::Outcome> TrialBench::outcome(const Candidate& candidate) const {
  const auto found = out_.find(candidate.number);
  if (found == out_.end()) {
    return std::nullopt;
  }
  return found->second;
}

const Compiled& TrialBench::artifact(const Candidate& candidate) const {
  return artifacts_.known(candidate.artifact_key.digest);
}

Attempt TrialBench::out(const Candidate& candidate, v1::Outcome outcome) {
  out_[candidate.number] = outcome;
  put_away(candidate);
  return Attempt::Out;
}

void TrialBench::reject(const Candidate& candidate, v1::Outcome outcome, const std::string& detail) {
  const v1::TrialHeader* header = log_.header(candidate);
  log_.set_outcome(candidate, outcome, detail, header ? header->fault_count() : 0);
  log_.commit();
  out(candidate, outcome);
}

void TrialBench::share(const Candidate& candidate, const Candidate& measured) {
  if (const auto end = outcome(measured)) {
    out_[candidate.number] = *end;
  }
  log_.share(candidate, measured);
}

void TrialBench::put_away(const Candidate& candidate) {
  device_.unload(candidate);
  artifacts_.forget_bytes(candidate.artifact_key.digest);
}

void TrialBench::want(const Candidate& candidate) {
  const v1::TrialHeader* header = log_.header(candidate);
  if (header && header->outcome() == v1::COMPILE) {
    return;
  }
  artifacts_.want(device_.wanted(candidate));
}

// Arguments that do not fit are the spec's fault, whatever the configuration: nothing of it is launched.
std::string TrialBench::exceeded_limit(const Candidate& candidate, const Problem& problem,
                                       const LaunchPlan& plan, std::string_view cubin) const {
  const Compiled& compiled = artifact(candidate);
  const CompiledEntries entries = compiled_entries(cubin, compiled.entries, compiled.symbols);
  std::string limit;
  for (const EntryFault& fault :
       entry_faults(input_.spec->plan_template(problem, candidate.configuration), plan, entries)) {
    if (!fault.is_limit) {
      throw Error(ErrorCode::InvalidArgument, input_.spec->file + " " + fault.pointer, fault.cause);
    }
    limit = limit.empty() ? fault.pointer + ": " + fault.cause : limit;
  }
  return limit;
}

Attempt TrialBench::compile(const Candidate& candidate) {
  const v1::TrialHeader* header = log_.header(candidate);
  if (header && header->outcome() == v1::COMPILE) {
    return out(candidate, v1::COMPILE);
  }
  const Compiled& compiled = artifacts_.get(device_.wanted(candidate));
  if (compiled.outcome != v1::CORRECT) {
    reject(candidate, v1::COMPILE, compiled.log);
    return Attempt::Out;
  }
  // A trial with results was launched before: its bytes need not be fetched for this.
  const std::string_view cubin =
      header ? std::string_view() : artifacts_.kept_cubin(candidate.artifact_key.digest);
  const std::string limit = exceeded_limit(candidate, input_.problem, candidate.plan, cubin);
  if (limit.empty()) {
    return adopt(candidate);
  }
  reject(candidate, v1::CONSTRAINT, limit);
  return Attempt::Out;
}

Attempt TrialBench::adopt(const Candidate& candidate) {
  if (!log_.adopt(candidate)) {
    return Attempt::Done;
  }
  const WorkSizes sizes = input_.spec->work_sizes(input_.problem);
  const measure::FloorWork work{sizes.flops.value_or(0), sizes.min_read_bytes.value_or(0),
                                !input_.policy.warm_l2};
  for (const auto stage : {v1::SampleBlock::SCREEN, v1::SampleBlock::FINAL}) {
    for (const v1::SampleBlock* block : log_.blocks(candidate, stage)) {
      const measure::FloorRates rates =
          measure::floor_rates(input_.facts, block->conditions().sm_mhz(), block->conditions().memory_mhz());
      const std::string why = measure::impossible_sample(
          work, rates, {block->samples_us().begin(), block->samples_us().end()}, block->tick_us(), settings_);
      if (!why.empty()) {
        reject(candidate, v1::WRONG_RESULT, measure::kTimeRefused + why);
        return Attempt::Out;
      }
    }
  }
  return Attempt::Done;
}

bool TrialBench::is_settled(const Candidate& candidate) const {
  const v1::TrialHeader* header = log_.header(candidate);
  if (!header) {
    return false;
  }
  const bool faulted = is_fault(header->outcome()) && header->fault_count() >= kFaultsThatCount;
  return faulted || header->outcome() == v1::WRONG_RESULT || header->outcome() == v1::CONSTRAINT;
}

// Called only if the device would be needed. Measurements from before a trial failed still count, so that a
// resumed job compares the others with the same values as an undisturbed one.
bool TrialBench::settled(const Candidate& candidate) {
  if (!is_settled(candidate)) {
    return false;
  }
  out(candidate, log_.header(candidate)->outcome());
  return true;
}

bool TrialBench::has_faulted(const Candidate& candidate) const {
  const v1::TrialHeader* header = log_.header(candidate);
  return header && header->fault_count() == 1;
}

void TrialBench::make_fresh_for(const Candidate& candidate) {
  const auto found = faulted_in_.find(candidate.number);
  if (found != faulted_in_.end() && found->second == device_.generation()) {
    device_.restart();
  }
}

Attempt TrialBench::fault(const Candidate& candidate, v1::Outcome outcome, const std::string& detail) {
  const v1::TrialHeader* header = log_.header(candidate);
  // It is repeated in a fresh worker (make_fresh_for): in the same one the first may cause the second. An
  // untrusted source that hangs costs no second deadline.
  const bool counts_at_once = input_.untrusted && outcome == v1::TIMEOUT;
  const std::uint32_t count = counts_at_once ? kFaultsThatCount : (header ? header->fault_count() : 0) + 1;
  faulted_in_[candidate.number] = device_.generation();
  log_.set_outcome(candidate, outcome, detail, count);
  log_.commit();
  if (count >= kFaultsThatCount) {
    return out(candidate, outcome);
  }
  return Attempt::Deferred;
}

Attempt TrialBench::judge(const Candidate& candidate, v1::Outcome outcome, const std::string& detail) {
  if (outcome == v1::CORRECT) {
    return Attempt::Done;
  }
  if (outcome == v1::OUT_OF_MEMORY) {
    return out(candidate, outcome);
  }
  if (is_fault(outcome)) {
    return fault(candidate, outcome, detail);
  }
  reject(candidate, outcome, detail);
  return Attempt::Out;
}

Attempt TrialBench::keep_verification(const Candidate& candidate, const DeviceSetup& setup, bool after_timing,
                                      const v1::DeviceReply& reply) {
  v1::VerificationResult result = reply.verification();
  if (result.outcome() == v1::OUTCOME_UNSPECIFIED) {
    result.set_outcome(reply.outcome());
  }
  result.set_after_timing(after_timing);
  if (!log_.verification(candidate, setup.problem, after_timing)) {
    log_.add(candidate, setup.problem, result);
  }
  if (result.outcome() != v1::CORRECT) {
    const v1::VerificationResult* before = log_.verification(candidate, setup.problem, false);
    const bool was_right = after_timing && before && before->outcome() == v1::CORRECT;
    reject(candidate, result.outcome(),
           to_string(setup.problem) + ": " + (was_right ? kRightAtFirst : "") + result.detail());
    return Attempt::Out;
  }
  const v1::TrialHeader* header = log_.header(candidate);
  // Stored by another tolerance, or after a fault that did not repeat.
  if (header->outcome() != v1::CORRECT) {
    log_.set_outcome(candidate, v1::CORRECT, "", header->fault_count());
  }
  return Attempt::Done;
}

bool TrialBench::has_wanted_bits(const DeviceSetup& setup, bool after_timing, const v1::DeviceReply& reply) {
  if (input_.numerics.kind == Numerics::Kind::Tolerance) {
    return true;
  }
  return reply.verification().same_bits() && (!rows_ || rows_->holds(setup, after_timing, reply));
}

void TrialBench::take_standing(const Candidate& candidate, const v1::VerificationResult& stored) {
  const v1::TrialHeader& header = *log_.header(candidate);
  const bool may_repeat = is_fault(header.outcome()) && header.fault_count() < kFaultsThatCount;
  const bool is_outdated = header.outcome() == v1::WRONG_RESULT &&
                           !header.detail().starts_with(measure::kTimeRefused) &&
                           log_.was_verified_otherwise(candidate);
  if (header.outcome() == v1::UNVERIFIED || may_repeat || is_outdated) {
    log_.set_outcome(candidate, stored.outcome(), stored.detail(), header.fault_count());
  }
}

Attempt TrialBench::verify(const Candidate& candidate, const DeviceSetup& setup, bool after_timing) {
  const v1::VerificationResult* stored = log_.verification(candidate, setup.problem, after_timing);
  if (stored) {
    take_standing(candidate, *stored);
    const bool bits = stored->same_bits() || input_.numerics.kind == Numerics::Kind::Tolerance;
    if (stored->outcome() != v1::CORRECT || !bits) {
      return out(candidate, v1::WRONG_RESULT);
    }
    if (after_timing && settled(candidate)) {  // another kernel has all that this one's fault left out
      return Attempt::Out;
    }
    // The stored blocks of a trial that failed later still count, but the trial cannot win.
    if (!rows_ || (is_settled(candidate) && !after_timing)) {
      return Attempt::Done;
    }
  }
  const v1::TrialHeader* header = log_.header(candidate);
  const bool verifies_anew = !stored && header && header->outcome() == v1::WRONG_RESULT;
  if (!verifies_anew && settled(candidate)) {
    return Attempt::Out;
  }
  if (setup.number != DeviceSetup::kMain) {
    const std::string limit = exceeded_limit(candidate, setup.problem, setup.plan,
                                             artifacts_.kept_cubin(candidate.artifact_key.digest));
    if (!limit.empty()) {
      reject(candidate, v1::CONSTRAINT, to_string(setup.problem) + ": " + limit);
      return Attempt::Out;
    }
  }
  const std::vector<v1::OutputParts> hashed =
      rows_ ? std::vector<v1::OutputParts>{rows_->rows_at(setup.problem)} : std::vector<v1::OutputParts>{};
  const v1::DeviceReply reply = device_.verify(candidate, setup, after_timing, hashed);
  if (!reply.has_verification()) {
    return judge(candidate, reply.outcome(), reply.detail());
  }
  if (is_fault(reply.outcome()) || reply.outcome() == v1::OUT_OF_MEMORY) {
    return judge(candidate, reply.outcome(), reply.detail());
  }
  const bool is_known = stored && reply.outcome() == v1::CORRECT;
  const Attempt attempt = is_known ? Attempt::Done : keep_verification(candidate, setup, after_timing, reply);
  if (attempt != Attempt::Done || has_wanted_bits(setup, after_timing, reply)) {
    return attempt;
  }
  // The trial is correct, but this job looks for more: that is not an outcome of the trial.
  log_.commit();
  return out(candidate, v1::WRONG_RESULT);
}

v1::SampleBlock TrialBench::block_of(const v1::DeviceReply& reply, const v1::MeasuredItem& item) const {
  v1::SampleBlock block;
  *block.mutable_samples_us() = item.samples_us();
  *block.mutable_conditions() = item.conditions();
  if (reply.foreign_use()) {
    block.mutable_conditions()->set_contended(true);
  }
  block.set_tick_us(tick_us_);
  return block;
}

Attempt TrialBench::judge_measured(const Candidate& candidate, const v1::DeviceReply& reply) {
  const v1::MeasuredItem* item = find_item(reply, candidate);
  if (!item) {
    return judge(candidate, reply.outcome(), reply.detail());
  }
  if (item->below_floor()) {
    reject(candidate, v1::WRONG_RESULT, measure::kTimeRefused + item->detail());
    return Attempt::Out;
  }
  return judge(candidate, item->outcome(), item->detail().empty() ? reply.detail() : item->detail());
}

TrialBench::Screen TrialBench::screen(const Candidate& candidate, std::size_t position, std::uint32_t samples,
                                      double judged_against_us) {
  const auto stored = log_.blocks(candidate, v1::SampleBlock::SCREEN);
  if (position < stored.size()) {
    const auto& times = stored[position]->samples_us();
    return {Attempt::Done, {times.begin(), times.end()}};
  }
  const v1::TrialHeader* header = log_.header(candidate);
  const bool is_judged_anew =
      header && header->outcome() == v1::WRONG_RESULT && log_.was_verified_otherwise(candidate);
  if (!is_judged_anew && settled(candidate)) {
    return {Attempt::Out, {}};
  }
  const std::uint32_t first = log_.samples(candidate, v1::SampleBlock::SCREEN);
  const bool is_verified = log_.verification(candidate, input_.problem, false) != nullptr;
  const TrialDevice::Sampling how{v1::SampleBlock::SCREEN, !is_verified};
  const TrialDevice::Measured measured = device_.measure({{&candidate, samples, first}}, how);
  if (measured.culprit) {
    return {judge_measured(candidate, measured.reply), {}};
  }
  if (header && !is_verified && header->outcome() != v1::UNVERIFIED) {
    // A fault that did not repeat, or another tolerance has judged it.
    log_.set_outcome(candidate, v1::UNVERIFIED, "", header->fault_count());
  }
  learn_tick(measured.reply.tick_us());
  v1::SampleBlock block = block_of(measured.reply, measured.reply.measured(0));
  block.set_stage(v1::SampleBlock::SCREEN);
  block.set_index(log_.next_index(candidate, v1::SampleBlock::SCREEN));
  block.set_judged_against_us(judged_against_us);
  const std::vector<double> times(block.samples_us().begin(), block.samples_us().end());
  log_.add(candidate, std::move(block));
  commit_meanwhile();
  return {Attempt::Done, times};
}

std::optional<double> TrialBench::observed_us(const Candidate& candidate) const {
  const v1::VerificationResult* verified = log_.verification(candidate, input_.problem, false);
  std::vector<double> samples;
  for (const v1::SampleBlock* block : log_.blocks(candidate, v1::SampleBlock::SCREEN)) {
    samples.insert(samples.end(), block->samples_us().begin(), block->samples_us().end());
  }
  if (samples.empty() || (verified && verified->outcome() != v1::CORRECT)) {
    return std::nullopt;
  }
  return screen_value_us(samples, tick_us_, settings_);
}

v1::Outcome TrialBench::ending(const Candidate& candidate) const {
  const v1::TrialHeader* header = log_.header(candidate);
  return outcome(candidate).value_or(header ? header->outcome() : v1::UNVERIFIED);
}

bool TrialBench::is_known(const Candidate& candidate) const { return log_.header(candidate) != nullptr; }

std::optional<TrialBench::Round> TrialBench::stored_round(std::uint32_t round,
                                                          const std::vector<const Candidate*>& order) const {
  Round result;
  for (const Candidate* candidate : order) {
    const v1::SampleBlock* block = log_.block(*candidate, v1::SampleBlock::FINAL, round);
    if (!block) {
      return std::nullopt;
    }
    const std::vector<double> times(block->samples_us().begin(), block->samples_us().end());
    result.times_us[candidate->number] = location_us(times, tick_us_, settings_);
  }
  return result;
}

// Every second round of an untrusted source has inputs of its own: those of the others are the same ones.
// If a worker died over several trials, it is unknown which one killed it: then they are measured one by one.
TrialDevice::Measured TrialBench::measure_round(const std::vector<const Candidate*>& order,
                                                std::uint32_t samples, std::uint32_t round) {
  const TrialDevice::Sampling how{
      .stage = v1::SampleBlock::FINAL,
      .input_seed = input_.untrusted && round % 2 == 1 ? kFirstRoundSeed + round : 0};
  std::vector<TrialDevice::Item> items;
  for (const Candidate* candidate : order) {
    items.push_back({candidate, samples, log_.samples(*candidate, v1::SampleBlock::FINAL)});
  }
  TrialDevice::Measured all = device_.measure(items, how);
  if (all.culprit || all.reply.outcome() == v1::CORRECT) {
    return all;
  }
  TrialDevice::Measured result;
  for (const TrialDevice::Item& item : items) {
    TrialDevice::Measured one = device_.measure({item}, how);
    if (one.culprit) {
      return one;
    }
    one.reply.mutable_measured()->MergeFrom(result.reply.measured());
    result = std::move(one);
  }
  return result;
}

TrialBench::Round TrialBench::round(std::uint32_t round, const std::vector<const Candidate*>& order,
                                    std::uint32_t samples) {
  if (auto stored = stored_round(round, order)) {
    return *std::move(stored);
  }
  for (const Candidate* candidate : order) {
    if (settled(*candidate)) {
      return {{}, candidate, Attempt::Out};
    }
  }
  const TrialDevice::Measured measured = measure_round(order, samples, round);
  if (measured.culprit) {
    return {{}, measured.culprit, judge_measured(*measured.culprit, measured.reply)};
  }
  learn_tick(measured.reply.tick_us());
  for (const Candidate* candidate : order) {
    const v1::MeasuredItem* item = find_item(measured.reply, *candidate);
    if (!item) {
      throw Error(ErrorCode::Internal, "device worker", "a trial of a round was not measured");
    }
    v1::SampleBlock block = block_of(measured.reply, *item);
    block.set_stage(v1::SampleBlock::FINAL);
    block.set_index(round);
    log_.add(*candidate, std::move(block));
  }
  commit_meanwhile();
  return *stored_round(round, order);
}

}  // namespace cubind
