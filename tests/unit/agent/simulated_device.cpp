#include "tests/unit/agent/simulated_device.hpp"

#include "base/digest.hpp"
#include "base/random.hpp"
#include "plan/wire.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind::test {
namespace {

constexpr std::uint64_t kL2Bytes = 50 << 20;

v1::DeviceReply reply_of(v1::Outcome outcome) {
  v1::DeviceReply reply;
  reply.set_outcome(outcome);
  if (outcome != v1::CORRECT) {
    reply.set_detail("simulated");
  }
  return reply;
}

bool is_fault(v1::Outcome outcome) { return outcome != v1::CORRECT && outcome != v1::WRONG_RESULT; }

}  // namespace

void SimulatedDevice::start() {
  ++starts;
  running = true;
}

void SimulatedDevice::stop() noexcept {
  running = false;
  setups_.clear();
  bytes_.clear();
  loaded_.clear();
}

v1::Outcome SimulatedDevice::outcome(const Configuration& configuration, const std::string& at) const {
  return behaviour_.outcome ? behaviour_.outcome(configuration, at) : v1::CORRECT;
}

double SimulatedDevice::sample(const Loaded& trial, int stage, std::uint32_t k) const {
  Random random(Digest::of(trial.key + std::to_string(stage) + ":" + std::to_string(k)));
  return behaviour_.time_us(trial.configuration) * (1 + behaviour_.noise * (random.uniform() - 0.5));
}

bool SimulatedDevice::refuses(const v1::PrepareProblem& request) const {
  std::uint64_t bytes = verify::trial_bytes(request, kL2Bytes);
  for (const auto& [setup, taken] : bytes_) {
    bytes += setup == request.setup() ? 0 : taken;
  }
  return (behaviour_.memory_limit > 0 && bytes > behaviour_.memory_limit) ||
         (behaviour_.refuses_to_prepare &&
          behaviour_.refuses_to_prepare(problem_from_wire(request.problem(), "problem")));
}

void SimulatedDevice::note_shared(const v1::LaunchPlan& plan) {
  for (const v1::Launch& launch : plan.launches()) {
    shared_bytes.insert(launch.shared_bytes());
  }
}

v1::DeviceReply SimulatedDevice::verify(const v1::VerifyTrial& request) {
  note_shared(request.plan());
  const Loaded& trial = loaded_.at(request.trial());
  const Problem& problem = setups_.at(request.setup());
  ++verified[to_string(trial.configuration) + " at " + to_string(problem) +
             (request.after_timing() ? " after" : "")];
  input_seeds[request.after_timing()].insert(request.input_seed());
  launches[to_string(trial.configuration)] = request.launches();
  if (request.launches() > 0 && behaviour_.failing_references > 0) {
    --behaviour_.failing_references;
    v1::DeviceReply reply = reply_of(v1::RUNTIME);
    reply.set_detail("the reference: CUDA_ERROR_ILLEGAL_ADDRESS");
    return reply;
  }
  const v1::Outcome how = outcome(trial.configuration, "verify");
  if (is_fault(how)) {
    return reply_of(how);
  }
  const bool wrong =
      behaviour_.wrong && behaviour_.wrong(trial.configuration, problem, request.after_timing());
  v1::DeviceReply reply = reply_of(wrong ? v1::WRONG_RESULT : v1::CORRECT);
  v1::VerificationResult& result = *reply.mutable_verification();
  result.set_outcome(reply.outcome());
  result.set_worst_excess(wrong ? 7 : 0.25);
  result.set_same_bits(!behaviour_.bits_differ || !behaviour_.bits_differ(trial.configuration));
  result.set_reference("kernel");
  for (const v1::OutputParts& parts : request.hashed()) {
    const std::uint64_t elements = parts.parts(0).elements();
    const std::uint64_t bits =
        behaviour_.row_bits ? behaviour_.row_bits(trial.configuration, problem, elements) : 0;
    reply.add_hashes(1000 * elements + bits);
  }
  return reply;
}

v1::DeviceReply SimulatedDevice::measure(const v1::MeasureTrials& request) {
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  if (request.stage() == v1::SampleBlock::FINAL) {
    rounds.emplace_back();
    round_seeds.push_back(request.input_seed());
    for (const v1::MeasureTrials::Item& item : request.items()) {
      if (item.untrusted()) {
        untrusted.insert(to_string(loaded_.at(item.trial()).configuration));
      }
    }
  }
  for (const v1::MeasureTrials::Item& item : request.items()) {
    const Loaded& trial = loaded_.at(item.trial());
    note_shared(item.plan());
    v1::MeasuredItem& to = *reply.add_measured();
    to.set_trial(item.trial());
    to.set_outcome(outcome(trial.configuration, "measure"));
    if (to.outcome() != v1::CORRECT) {
      reply.set_outcome(to.outcome());
      to.set_detail("simulated");
      return reply;
    }
    watched[to_string(trial.configuration)] += request.guarded() ? 1 : 0;
    if (request.guarded() && behaviour_.damages && behaviour_.damages(trial.configuration)) {
      to.set_outcome(v1::WRONG_RESULT);
      to.set_detail("simulated damage");
      return reply;
    }
    if (request.stage() == v1::SampleBlock::FINAL) {
      rounds.back().push_back(trial.key);
    }
    for (std::uint32_t i = 0; i < item.samples(); ++i) {
      const std::uint32_t k = item.first_sample() + i;
      ++measured[{trial.key, request.stage(), k}];
      to.add_samples_us(sample(trial, request.stage(), k));
    }
    to.mutable_conditions()->set_sm_mhz(1980);
    to.mutable_conditions()->set_throttled(behaviour_.throttled);
    if (!behaviour_.below_floor || !behaviour_.below_floor(trial.configuration)) {
      continue;
    }
    to.set_below_floor(true);
    to.set_detail("0.1 us is below the floor of 3.4 us");
  }
  reply.set_tick_us(behaviour_.tick_us);
  return reply;
}

DeviceLink::CallResult SimulatedDevice::answer(v1::DeviceReply reply) {
  if (is_fault(reply.outcome()) && reply.outcome() != v1::OUT_OF_MEMORY) {
    if (behaviour_.dies) {
      stop();
      return {std::nullopt, reply.outcome() == v1::TIMEOUT, "signal 11"};
    }
    reply.set_sticky(behaviour_.sticky);
    if (behaviour_.sticky) {
      stop();
    }
  }
  return {std::move(reply), false, ""};
}

v1::DeviceInfo SimulatedDevice::info() const {
  v1::DeviceInfo info;
  v1::DeviceFacts& facts = *info.mutable_facts();
  facts.set_name("Simulated");
  facts.set_pci_device_id(1);
  facts.set_cc_major(9);
  facts.set_sm_count(132);
  facts.set_l2_bytes(kL2Bytes);
  facts.set_shared_optin_bytes(232448);
  facts.set_memory_bytes(std::uint64_t{141} << 30);
  facts.set_memory_bus_bits(6144);
  facts.set_replay_table(behaviour_.replay_table);
  info.mutable_driver()->set_cuda(13000);
  info.mutable_driver()->set_version("580.1");
  info.set_timer("cupti");
  info.set_tick_us(behaviour_.tick_us);
  info.set_memory_limit_bytes(behaviour_.memory_limit);
  return info;
}

v1::DeviceReply SimulatedDevice::load(const v1::LoadTrial& request) {
  const Configuration configuration = configuration_from_wire(request.configuration(), "configuration");
  loaded_[request.trial()] = {configuration, request.trial_key()};
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  for (const std::string& symbol : request.entry_symbols()) {
    v1::LoadedEntry& entry = *reply.add_entries();
    entry.set_entry_symbol(symbol);
    entry.set_registers(255);
    entry.set_max_threads_per_block(behaviour_.max_threads ? behaviour_.max_threads(configuration) : 0);
  }
  return reply;
}

v1::DeviceReply SimulatedDevice::work(const v1::DeviceRequest& request) {
  for (const std::uint32_t trial : request.unload()) {
    loaded_.erase(trial);
  }
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  switch (request.body_case()) {
    case v1::DeviceRequest::kOpen: {
      setups_.clear();
      bytes_.clear();
      loaded_.clear();
      *reply.mutable_info() = info();
      break;
    }
    case v1::DeviceRequest::kPrepare:
      if (refuses(request.prepare())) {
        return reply_of(v1::OUT_OF_MEMORY);
      }
      bytes_[request.prepare().setup()] = verify::setup_bytes(request.prepare());
      setups_[request.prepare().setup()] = problem_from_wire(request.prepare().problem(), "problem");
      if (request.prepare().find_vacuity()) {
        reply.set_vacuity(behaviour_.vacuity);
      }
      break;
    case v1::DeviceRequest::kLoad:
      return load(request.load());
    case v1::DeviceRequest::kVerify:
      return verify(request.verify());
    case v1::DeviceRequest::kMeasure:
      on_measure();
      return measure(request.measure());
    case v1::DeviceRequest::kRelease:
      setups_.erase(request.release().setup());
      bytes_.erase(request.release().setup());
      break;
    default:
      break;
  }
  return reply;
}

DeviceLink::CallResult SimulatedDevice::call(const v1::DeviceRequest& request,
                                             std::chrono::milliseconds deadline,
                                             const std::function<void()>& meanwhile) {
  if (meanwhile) {
    meanwhile();
  }
  if (request.has_prepare() && behaviour_.hangs_preparing > 0) {
    --behaviour_.hangs_preparing;
    return {std::nullopt, true, "no answer within 30000 ms"};
  }
  measured_within = request.has_measure() ? deadline : measured_within;
  const bool looks = !request.has_release();
  const bool foreign = looks && behaviour_.foreign && behaviour_.foreign();
  const bool uses_the_gpu = looks && !request.has_open() && !request.has_probe();
  worked_beside_others += foreign && uses_the_gpu ? 1 : 0;
  v1::DeviceReply reply =
      foreign && uses_the_gpu && !behaviour_.answers_beside_others ? reply_of(v1::CORRECT) : work(request);
  reply.set_foreign_use(foreign);
  return answer(reply);
}

}  // namespace cubind::test
