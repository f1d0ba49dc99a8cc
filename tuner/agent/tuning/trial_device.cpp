#include "tuner/agent/tuning/trial_device.hpp"

#include <algorithm>
#include <ranges>

#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/spec/cubin_entries.hpp"
#include "tuner/spec/entry_faults.hpp"

namespace cubind {
namespace {

// With `always` a shared device may still give no answer, again and again.
constexpr unsigned kMaxRepeats = 20;
// Fresh inputs before and after timing; the device worker mixes this into every buffer's seed.
constexpr std::uint64_t kSeedBefore = 1;
constexpr std::uint64_t kSeedAfter = 2;
// The function that printf() calls. A source that prints delays all jobs behind its own.
constexpr std::string_view kPrint = "vprintf";
// Of an untrusted source: what is wrong once in ten launches is right in so many once in 700,000 times.
constexpr std::uint32_t kUntrustedLaunches = 128;

bool exceeds_threads(const v1::DeviceReply& loaded, const LaunchPlan& plan, std::string& detail) {
  for (const Launch& launch : plan.launches) {
    const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    for (const v1::LoadedEntry& entry : loaded.entries()) {
      if (entry.entry_symbol() != launch.entry_symbol || entry.max_threads_per_block() == 0) {
        continue;
      }
      if (threads <= entry.max_threads_per_block()) {
        continue;
      }
      detail = launch.entry + ": a block of " + std::to_string(threads) + " threads, but with " +
               std::to_string(entry.registers()) + " registers per thread at most " +
               std::to_string(entry.max_threads_per_block()) + " can be launched";
      return true;
    }
  }
  return false;
}

// What the compiler decided comes on top of what the plan was checked with.
bool exceeds_shared(const JobInput& input, const LaunchPlan& plan, const Compiled& compiled,
                    std::string& detail) {
  const auto most = static_cast<std::uint64_t>(input.constants.shared_optin);
  for (const Launch& launch : plan.launches) {
    const auto entry =
        std::ranges::find(compiled.resources, launch.entry_symbol, &EntryResources::entry_symbol);
    const std::uint64_t fixed = entry == compiled.resources.end() ? 0 : entry->static_shared_bytes();
    if (most != 0 && fixed + launch.shared_bytes > most) {
      detail = launch.entry + ": a block takes " + std::to_string(fixed + launch.shared_bytes) +
               " bytes of shared memory, the device has " + std::to_string(most);
      return true;
    }
  }
  return false;
}

void require_launchable(const JobInput& input, const PlanTemplate& launches, const LaunchPlan& plan,
                        const Compiled& compiled, const std::string& cubin) {
  const auto faults =
      entry_faults(launches, plan, compiled_entries(cubin, compiled.entries, compiled.symbols));
  if (!faults.empty()) {
    throw Error(ErrorCode::InvalidArgument, input.spec->file + " " + faults.front().pointer,
                faults.front().cause);
  }
}

std::string vacuous(const std::string& why) {
  return "vacuous: the verification proves nothing, since " + why +
         ". Check that the kernel and its reference read their inputs. Mark an output that does not depend "
         "on the "
         "inputs with \"constant_output\": true";
}

v1::DeviceReply taken_by_others() {
  v1::DeviceReply reply;
  reply.set_outcome(v1::CORRECT);
  reply.set_foreign_use(true);
  return reply;
}

}  // namespace

TrialDevice::TrialDevice(const JobInput& input, const KernelBuild& build, CompileSource& artifacts,
                         RemoteDevice& remote, ConsentGate& consent)
    : input_(input), build_(build), artifacts_(artifacts), remote_(remote), consent_(consent) {}

CompileSource::Wanted TrialDevice::wanted(const Candidate& candidate) const {
  return {candidate.artifact_key, build_.identity(),
          [this, &candidate] { return build_.request(candidate.source); }, CompilePriority::Tuning};
}

CompileSource::Wanted TrialDevice::wanted_reference(const Problem& problem) const {
  const ArtifactSource source = reference_artifact_source(*input_.spec, problem, input_.architecture);
  return {artifact_key(source, build_.reference_identity()), build_.reference_identity(),
          [this, source] { return build_.reference_request(source); }, CompilePriority::Reference};
}

Configuration TrialDevice::launchable_default(std::size_t ahead) {
  std::vector<Candidate> candidates;
  for (const Configuration& one : input_.spec->defaults) {
    if (auto candidate = candidate_at(input_, build_, input_.problem, one)) {
      candidates.push_back(*std::move(candidate));
    }
  }
  for (const Candidate& one : candidates | std::views::take(ahead)) {
    artifacts_.want(wanted(one));
  }
  for (const Candidate& one : candidates) {
    const Compiled& compiled = artifacts_.get(wanted(one));
    std::string detail;
    if (compiled.outcome == v1::CORRECT &&
        !exceeds_shared(input_, as_compiled(one.plan, compiled), compiled, detail)) {
      return one.configuration;
    }
  }
  return input_.preset;  // whose fault ends the job
}

void TrialDevice::want_reference() {
  if (input_.replayed || input_.spec->reference.kind != ReferenceSpec::Kind::Kernel) {
    return;
  }
  artifacts_.want(wanted_reference(input_.problem));
}

ReferenceLaunch TrialDevice::default_reference(const Problem& problem) {
  const auto candidate = default_at(input_, build_, problem);
  if (!candidate) {
    throw Error(ErrorCode::FailedPrecondition, input_.spec->name + " at " + to_string(problem),
                "no default configuration to compare with");
  }
  const std::string where = input_.spec->name + " at " + to_string(problem);
  const Compiled& compiled = artifacts_.get(wanted(*candidate));
  if (compiled.outcome != v1::CORRECT) {
    throw Error(
        ErrorCode::FailedPrecondition, where,
        "the default configuration, which the others are compared with, does not compile: " + compiled.log);
  }
  ReferenceLaunch reference{"default", artifacts_.cubin(wanted(*candidate)), {}};
  require_launchable(input_, input_.spec->plan_template(problem, candidate->configuration), candidate->plan,
                     compiled, reference.cubin);
  reference.plan = as_compiled(candidate->plan, compiled);
  if (std::string detail; exceeds_shared(input_, reference.plan, compiled, detail)) {
    throw Error(
        ErrorCode::FailedPrecondition, where,
        "the default configuration, which the others are compared with, cannot be launched: " + detail);
  }
  return reference;
}

ReferenceLaunch TrialDevice::reference_for(const Problem& problem) {
  const bool by_default = input_.spec->reference.kind == ReferenceSpec::Kind::Default;
  if (input_.replayed) {
    return {by_default ? "default" : "kernel", "", {}};
  }
  if (by_default) {
    return default_reference(problem);
  }
  const CompileSource::Wanted want = wanted_reference(problem);
  const Compiled& compiled = artifacts_.get(want);
  if (compiled.outcome != v1::CORRECT) {
    throw Error(ErrorCode::FailedPrecondition, input_.spec->reference.source,
                "the reference does not compile: " + compiled.log);
  }
  const PlanTemplate launches = input_.spec->reference_template(problem);
  const PlanEvaluator evaluator(launches, problem, Configuration{}, input_.constants);
  const PlanResult plan = evaluator.evaluate(problem, Configuration{});
  if (!plan.plan) {
    throw Error(ErrorCode::FailedPrecondition, input_.spec->file + " /reference/launches", plan.violation);
  }
  const std::string& cubin = artifacts_.cubin(want);
  require_launchable(input_, launches, *plan.plan, compiled, cubin);
  return {"kernel", cubin, as_compiled(*plan.plan, compiled)};
}

LaunchPlan TrialDevice::compiled_plan(const Candidate& candidate, const LaunchPlan& plan) const {
  return as_compiled(plan, artifacts_.known(candidate.artifact_key.digest));
}

v1::PrepareProblem TrialDevice::setup_request(const DeviceSetup& setup) {
  std::vector<const LaunchPlan*> plans = {&setup.plan};
  const auto buffers = buffers_plan(input_, setup.problem);
  if (buffers) {
    plans.push_back(&*buffers);
  }
  v1::PrepareProblem request =
      make_prepare_request(input_, setup.number, setup.problem, plans, reference_for(setup.problem));
  request.set_find_vacuity(request.find_vacuity() && !knows_vacuity_);
  return request;
}

v1::DeviceReply TrialDevice::prepare_beside_others(const DeviceSetup& setup) {
  const auto make = [&] { return setup_request(setup); };
  v1::DeviceReply reply = remote_.prepare(setup.number, make);
  // What took too long takes too long again, what died may have been another's fault.
  if (reply.sticky() && reply.outcome() != v1::TIMEOUT) {
    reply = remote_.prepare(setup.number, make);
  }
  const std::string where = input_.spec->name + " at " + to_string(setup.problem);
  if (reply.outcome() == v1::TIMEOUT) {
    throw Error(
        ErrorCode::FailedPrecondition, where,
        "its inputs and its reference were not ready in time (" + reply.detail() +
            "): does the reference end? A reference with much work needs \"flops\" in /work, from which "
            "its time is estimated");
  }
  if (!reply.vacuity().empty()) {
    throw Error(ErrorCode::FailedPrecondition, where, vacuous(reply.vacuity()));
  }
  if (reply.outcome() == v1::CORRECT) {
    knows_vacuity_ = knows_vacuity_ || setup.number == DeviceSetup::kMain;
    return reply;
  }
  if (reply.outcome() == v1::OUT_OF_MEMORY) {
    // Memory that another process has taken says nothing about what fits.
    if (consent_.gives_way() && remote_.probe().foreign_use()) {
      return taken_by_others();
    }
    throw OutOfDeviceMemory(where, "out of device memory: " + reply.detail());
  }
  throw Error(ErrorCode::FailedPrecondition, where, "the reference failed: " + reply.detail());
}

v1::DeviceReply TrialDevice::prepare(const DeviceSetup& setup) {
  try {
    return prepare_beside_others(setup);
  } catch (const OutOfDeviceMemory&) {
    if (!remote_.release_all()) {
      throw;
    }
    return prepare_beside_others(setup);
  }
}

void TrialDevice::make_ready() {
  while (has_to_repeat(prepare({DeviceSetup::kMain, input_.problem, {}}), true)) {
  }
}

bool TrialDevice::is_untrusted(const Candidate& candidate) const {
  return input_.untrusted && !candidate.is_default;
}

// Once: the bytes of a stored artifact would have to be fetched.
bool TrialDevice::prints(const Candidate& candidate) {
  if (!is_untrusted(candidate) || input_.replayed) {
    return false;
  }
  const auto [found, is_new] = prints_.try_emplace(candidate.number);
  if (is_new) {
    found->second = calls_driver(artifacts_.cubin(wanted(candidate)), kPrint);
  }
  return found->second;
}

v1::DeviceReply TrialDevice::load(const Candidate& candidate) {
  const Compiled& compiled = artifacts_.get(wanted(candidate));
  if (prints(candidate)) {
    v1::DeviceReply refused;
    refused.set_outcome(v1::CONSTRAINT);
    refused.set_detail("prints: a judged source may not");
    return refused;
  }
  v1::DeviceReply reply = remote_.load(candidate.number, [&] {
    v1::LoadTrial request;
    request.set_trial(candidate.number);
    if (!input_.replayed) {
      request.set_cubin(artifacts_.cubin(wanted(candidate)));
    }
    for (std::size_t i = 0; i < compiled.symbols.size(); ++i) {
      if (!is_variable(compiled.entries[i])) {
        request.add_entry_symbols(compiled.symbols[i]);
      }
    }
    to_wire(candidate.configuration, *request.mutable_configuration());
    request.set_setup(DeviceSetup::kMain);
    request.set_trial_key(bytes_of(candidate.trial_key.digest));
    request.set_untrusted(is_untrusted(candidate));
    return request;
  });
  std::string detail;
  const LaunchPlan plan = as_compiled(candidate.plan, compiled);
  if (reply.outcome() == v1::CORRECT &&
      (exceeds_threads(reply, plan, detail) || exceeds_shared(input_, plan, compiled, detail))) {
    reply.set_outcome(v1::CONSTRAINT);
    reply.set_detail(detail);
  }
  return reply;
}

bool TrialDevice::has_to_repeat(const v1::DeviceReply& reply, bool complete) {
  if (!reply.foreign_use() || (!consent_.gives_way() && complete)) {
    repeats_ = 0;
    return false;
  }
  if (consent_.gives_way()) {
    consent_.wait_until_idle();
  } else if (++repeats_ > kMaxRepeats) {
    throw Error(ErrorCode::Unavailable, "device worker", "the GPU is shared and gives no answer");
  }
  return true;
}

v1::DeviceReply TrialDevice::verify(const Candidate& candidate, const DeviceSetup& setup, bool after_timing,
                                    const std::vector<v1::OutputParts>& hashed) {
  const DeviceSetup main{DeviceSetup::kMain, input_.problem, {}};
  const auto is_exchanged = [](const ArgumentSpec& one) { return one.fill.kind == Fill::Kind::Iota; };
  bool may_reference_fail =
      after_timing && is_untrusted(candidate) && std::ranges::any_of(input_.spec->arguments, is_exchanged);
  while (true) {
    v1::DeviceReply reply = prepare(main);
    if (has_to_repeat(reply, true)) {
      continue;
    }
    reply = load(candidate);
    if (has_to_repeat(reply, true)) {
      continue;
    }
    if (reply.outcome() == v1::CORRECT && setup.number != DeviceSetup::kMain) {
      reply = prepare(setup);
      if (has_to_repeat(reply, true)) {
        continue;
      }
      reply = load(candidate);  // again, should that have taken a fresh worker
      if (has_to_repeat(reply, true)) {
        continue;
      }
    }
    if (reply.outcome() != v1::CORRECT) {
      return reply;
    }
    v1::VerifyTrial request;
    request.set_trial(candidate.number);
    request.set_setup(setup.number);
    to_wire(compiled_plan(candidate, setup.plan), *request.mutable_plan());
    request.set_input_seed(after_timing ? kSeedAfter : kSeedBefore);
    request.set_check_same_bits(true);
    request.set_after_timing(after_timing);
    request.set_launches(after_timing && is_untrusted(candidate) ? kUntrustedLaunches : 0);
    request.mutable_hashed()->Assign(hashed.begin(), hashed.end());
    reply = remote_.verify(request);
    // The exchanged elements may be no input for the reference. A fresh worker exchanges none.
    if (may_reference_fail && reply.detail().starts_with("the reference")) {
      may_reference_fail = false;
      restart();
      continue;
    }
    if (!has_to_repeat(reply, reply.has_verification())) {
      return reply;
    }
  }
}

TrialDevice::Measured TrialDevice::try_measure(const std::vector<Item>& items, const Sampling& how) {
  v1::MeasureTrials request;
  request.set_setup(DeviceSetup::kMain);
  request.set_stage(how.stage);
  request.set_guarded(how.guarded);
  request.set_input_seed(how.input_seed);
  Measured result;
  result.reply = prepare({DeviceSetup::kMain, input_.problem, {}});
  for (const Item& item : items) {
    if (result.reply.foreign_use() && consent_.gives_way()) {
      return result;
    }
    result.reply = load(*item.candidate);
    if (result.reply.foreign_use() && consent_.gives_way()) {
      return result;
    }
    if (result.reply.outcome() != v1::CORRECT) {
      result.culprit = item.candidate;
      return result;
    }
    v1::MeasureTrials::Item& to = *request.add_items();
    to.set_trial(item.candidate->number);
    to_wire(compiled_plan(*item.candidate, item.candidate->plan), *to.mutable_plan());
    to.set_samples(item.samples);
    to.set_first_sample(item.first_sample);
    to.set_untrusted(how.stage == v1::SampleBlock::FINAL && is_untrusted(*item.candidate));
  }
  result.reply = remote_.measure(std::move(request));
  for (const v1::MeasuredItem& measured : result.reply.measured()) {
    if (measured.outcome() == v1::CORRECT && !measured.below_floor()) {
      continue;
    }
    const auto found = std::ranges::find_if(
        items, [&](const Item& item) { return item.candidate->number == measured.trial(); });
    if (found != items.end()) {
      result.culprit = found->candidate;
    }
    break;
  }
  if (!result.culprit && items.size() == 1 && result.reply.outcome() != v1::CORRECT) {
    result.culprit = items.front().candidate;
  }
  return result;
}

TrialDevice::Measured TrialDevice::measure(const std::vector<Item>& items, const Sampling& how) {
  while (true) {
    Measured result = try_measure(items, how);
    const bool complete = result.reply.measured_size() == static_cast<int>(items.size());
    if (!has_to_repeat(result.reply, complete || result.culprit != nullptr)) {
      return result;
    }
  }
}

}  // namespace cubind
