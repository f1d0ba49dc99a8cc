// A device that plays a table of recorded trials: no GPU, real processes above it. What it yields is evidence
// `replayed`.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/gpu_lock.hpp"
#include "tuner/worker/replay_faults.hpp"
#include "tuner/worker/replay_table.hpp"

namespace cubind::worker {
namespace {

constexpr std::size_t kMostRecorded =
    10'000;  // problems that are told; a table with more is asked one by one
constexpr std::uint32_t kReplayedCuda = 13000;  // a recorded driver loads whatever NVRTC compiled here

[[noreturn]] void hang() {
  while (true) {
    ::pause();
  }
}

v1::DeviceReply failed(v1::Outcome outcome, const std::string& detail, bool sticky = false) {
  v1::DeviceReply reply;
  reply.set_outcome(outcome);
  reply.set_detail(detail);
  reply.set_sticky(sticky);
  return reply;
}

// What ends a context, in the driver's words.
v1::DeviceReply context_lost(const std::string& error) {
  return failed(v1::RUNTIME, error + " (injected)", true);
}

v1::DeviceReply correct() { return failed(v1::CORRECT, ""); }

struct Setup {
  std::string kernel;
  Problem problem;
  std::string reference;
  std::uint64_t bytes = 0;
};

struct Loaded {
  const TableTrial* trial = nullptr;
  Problem problem;
  Configuration configuration;
  Digest key;
};

class ReplayDevice final : public DeviceBackend {
 public:
  ReplayDevice(ReplayTable table, ReplayFaults faults)
      : table_(std::move(table)), faults_(std::move(faults)) {}

  v1::DeviceReply open(const v1::OpenDevice&) override;
  v1::DeviceReply prepare(const v1::PrepareProblem& request) override;
  v1::DeviceReply load(const v1::LoadTrial& request) override;
  v1::DeviceReply verify(const v1::VerifyTrial& request) override;
  v1::DeviceReply measure(const v1::MeasureTrials& request) override;
  void unload(std::uint32_t trial) override { loaded_.erase(trial); }
  v1::DeviceReply release(const v1::ReleaseProblem& request) override;
  v1::DeviceReply probe(const v1::ProbeDevice&) override;

 private:
  const Setup& setup(std::uint32_t number) const;
  const Loaded& loaded(std::uint32_t number) const;
  void pace(std::uint32_t steps) const { std::this_thread::sleep_for(faults_.pace() * steps); }
  std::uint64_t free_memory_bytes() const;
  // OUT_OF_MEMORY as a GPU with so little memory would say it; none: it fits.
  std::optional<v1::DeviceReply> refuse_for_memory(std::uint64_t bytes) const;
  // The fault's reply, or none where the fault leaves the request to go on. Hangs and crashes do not return.
  std::optional<v1::DeviceReply> suffer(std::optional<FaultKind> fault) const;
  v1::MeasuredItem measured(const v1::MeasureTrials& request, const v1::MeasureTrials::Item& item,
                            const Loaded& loaded) const;

  ReplayTable table_;
  ReplayFaults faults_;
  std::optional<GpuLock> lock_;
  std::uint64_t memory_limit_ = 0;  // 0: none
  std::map<std::uint32_t, Setup> setups_;
  std::map<std::uint32_t, Loaded> loaded_;
};

const Setup& ReplayDevice::setup(std::uint32_t number) const {
  const auto found = setups_.find(number);
  if (found == setups_.end()) {
    throw Error(ErrorCode::InvalidArgument, "setup", "no setup " + std::to_string(number));
  }
  return found->second;
}

const Loaded& ReplayDevice::loaded(std::uint32_t number) const {
  const auto found = loaded_.find(number);
  if (found == loaded_.end()) {
    throw Error(ErrorCode::InvalidArgument, "trial", "no loaded trial " + std::to_string(number));
  }
  return found->second;
}

std::uint64_t ReplayDevice::free_memory_bytes() const {
  return faults_.free_memory_bytes() > 0 ? faults_.free_memory_bytes() : table_.facts().memory_bytes;
}

std::optional<v1::DeviceReply> ReplayDevice::refuse_for_memory(std::uint64_t bytes) const {
  std::uint64_t taken = 0;
  for (const auto& [number, setup] : setups_) {
    taken += setup.bytes;
  }
  if (memory_limit_ == 0 || taken + bytes <= memory_limit_) {
    return std::nullopt;
  }
  return failed(v1::OUT_OF_MEMORY, std::to_string(bytes) + " bytes beside the " + std::to_string(taken) +
                                       " in use exceed the share of " + std::to_string(memory_limit_) +
                                       " bytes (--memory-fraction)");
}

std::optional<v1::DeviceReply> ReplayDevice::suffer(std::optional<FaultKind> fault) const {
  if (!fault) {
    return std::nullopt;
  }
  switch (*fault) {
    case FaultKind::Hang:
      hang();
    case FaultKind::Crash:
      ::_exit(134);
    case FaultKind::IllegalAddress:
      return context_lost("CUDA_ERROR_ILLEGAL_ADDRESS");
    case FaultKind::MisalignedAddress:
      return context_lost("CUDA_ERROR_MISALIGNED_ADDRESS");
    case FaultKind::Assert:
      return context_lost("CUDA_ERROR_ASSERT");
    case FaultKind::Trap:
      return context_lost("CUDA_ERROR_LAUNCH_FAILED");
    case FaultKind::GpuLost:
      return context_lost("CUDA_ERROR_UNKNOWN");
    case FaultKind::OutOfMemory:
      return failed(v1::OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (injected)");
    case FaultKind::Launch:
      return failed(v1::LAUNCH, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (injected)");
    case FaultKind::ForeignProcess: {
      v1::DeviceReply reply = correct();
      reply.set_foreign_use(true);
      return reply;
    }
    case FaultKind::TooManyRegisters:
    case FaultKind::WrongResult:
    case FaultKind::OtherBits:
    case FaultKind::Throttled:
    case FaultKind::BelowFloor:
    case FaultKind::Contended:
      break;
  }
  return std::nullopt;
}

v1::DeviceReply ReplayDevice::open(const v1::OpenDevice& request) {
  setups_.clear();
  loaded_.clear();
  const std::string uuid = "replay-" + table_.digest().hex().substr(0, 12);
  if (!faults_.lock_folder().empty() && !lock_) {
    lock_ = GpuLock::try_acquire(faults_.lock_folder(), uuid);
    if (!lock_) {
      throw Error(ErrorCode::Aborted, uuid, "another tuner holds this device");
    }
  }
  if (const auto lost = suffer(faults_.take(FaultPoint::Open, {}, nullptr)); lost && lost->sticky()) {
    throw Error(ErrorCode::Unavailable, uuid, lost->detail());
  }
  v1::DeviceReply reply = correct();
  v1::DeviceInfo& info = *reply.mutable_info();
  to_wire(table_.facts(), *info.mutable_facts());
  info.mutable_driver()->set_cuda(kReplayedCuda);
  info.mutable_driver()->set_version(faults_.driver().empty() ? table_.driver() : faults_.driver());
  info.set_uuid(uuid);
  info.set_timer("replay");
  info.set_free_memory_bytes(free_memory_bytes());
  if (faults_.free_memory_bytes() > 0) {
    memory_limit_ = verify::memory_share(request.memory_fraction(), faults_.free_memory_bytes());
  }
  info.set_memory_limit_bytes(memory_limit_);
  for (std::string& problem : table_.recorded(kMostRecorded)) {
    info.add_recorded(std::move(problem));
  }
  info.set_consent_rule("a replayed table has no other user");
  reply.set_timer("replay");
  return reply;
}

v1::DeviceReply ReplayDevice::prepare(const v1::PrepareProblem& request) {
  faults_.wait_while_held();
  Setup setup{request.kernel(), problem_from_wire(request.problem(), "problem"), request.reference(),
              verify::setup_bytes(request)};
  setups_.erase(request.setup());
  if (auto full = refuse_for_memory(setup.bytes)) {
    return *full;
  }
  if (auto fault = suffer(faults_.take(FaultPoint::Prepare, setup.problem, nullptr))) {
    return *fault;
  }
  setups_[request.setup()] = std::move(setup);
  return correct();
}

v1::DeviceReply ReplayDevice::load(const v1::LoadTrial& request) {
  faults_.wait_while_held();
  const Setup& place = setup(request.setup());
  Loaded loaded;
  loaded.configuration = configuration_from_wire(request.configuration(), "configuration");
  loaded.problem = place.problem;
  std::ranges::copy_n(
      request.trial_key().begin(),
      static_cast<std::ptrdiff_t>(std::min(request.trial_key().size(), loaded.key.bytes.size())),
      reinterpret_cast<char*>(loaded.key.bytes.data()));
  loaded.trial = table_.find(place.kernel, place.problem, loaded.configuration);
  const std::optional<FaultKind> fault = faults_.take(FaultPoint::Load, place.problem, &loaded.configuration);
  if (auto suffered = suffer(fault)) {
    return *suffered;
  }
  pace(1);
  if (!loaded.trial) {
    table_.require(place.kernel, place.problem);
    return failed(v1::LAUNCH, "not recorded: " + place.kernel + " at " + to_string(place.problem) + " with " +
                                  to_string(loaded.configuration));
  }
  v1::DeviceReply reply = correct();
  for (const std::string& symbol : request.entry_symbols()) {
    v1::LoadedEntry& entry = *reply.add_entries();
    entry.set_entry_symbol(symbol);
    entry.set_max_threads_per_block(fault == FaultKind::TooManyRegisters ? 1 : kMaxThreadsPerBlock);
  }
  loaded_[request.trial()] = std::move(loaded);
  return reply;
}

v1::DeviceReply ReplayDevice::verify(const v1::VerifyTrial& request) {
  faults_.wait_while_held();
  const Loaded& trial = loaded(request.trial());
  const Setup& place = setup(request.setup());
  const std::optional<FaultKind> fault =
      faults_.take(FaultPoint::Verify, place.problem, &trial.configuration);
  if (auto reply = suffer(fault)) {
    return *reply;
  }
  pace(1);
  v1::DeviceReply reply = correct();
  v1::VerificationResult& result = *reply.mutable_verification();
  result.set_outcome(v1::CORRECT);
  result.set_reference(place.reference);
  result.set_same_bits(true);
  result.set_after_timing(request.after_timing());
  // If the table has no verification of this trial on a problem, the recording did not need one.
  for (const VerificationResult& recorded : trial.trial->verifications) {
    if (recorded.problem != place.problem || recorded.after_timing != request.after_timing()) {
      continue;
    }
    result.set_outcome(to_wire(recorded.outcome));
    result.set_worst_excess(recorded.worst_excess);
    result.set_same_bits(recorded.same_bits);
  }
  if (fault == FaultKind::OtherBits) {
    result.set_same_bits(false);
  }
  if (trial.trial->outcome == Outcome::WrongResult || fault == FaultKind::WrongResult) {
    result.set_outcome(v1::WRONG_RESULT);
    result.set_detail(fault ? "injected" : trial.trial->detail);
    result.set_mismatches(1);
  }
  reply.set_outcome(result.outcome());
  return reply;
}

v1::MeasuredItem ReplayDevice::measured(const v1::MeasureTrials& request, const v1::MeasureTrials::Item& item,
                                        const Loaded& loaded) const {
  const bool final_stage = request.stage() == v1::SampleBlock::FINAL;
  const auto stage = final_stage ? ReplayTable::Stage::Finals : ReplayTable::Stage::Screening;
  v1::MeasuredItem result;
  result.set_trial(item.trial());
  result.mutable_conditions()->set_sm_mhz(ReplayTable::sm_mhz(*loaded.trial));
  result.set_outcome(v1::CORRECT);
  const Outcome outcome = loaded.trial->outcome;
  if (outcome != Outcome::Correct && outcome != Outcome::WrongResult && outcome != Outcome::Unverified) {
    result.set_outcome(to_wire(loaded.trial->outcome));
    result.set_detail(loaded.trial->detail);
    return result;
  }
  for (std::uint32_t i = 0; i < item.samples(); ++i) {
    const double sample = table_.sample(*loaded.trial, loaded.key, stage, item.first_sample() + i);
    if (sample > 0) {
      result.add_samples_us(sample);
    }
  }
  if (result.samples_us_size() == 0) {
    result.set_outcome(v1::LAUNCH);
    result.set_detail("the replayed trial has no samples");
  }
  return result;
}

v1::DeviceReply ReplayDevice::measure(const v1::MeasureTrials& request) {
  faults_.wait_while_held();
  const Setup& place = setup(request.setup());
  v1::DeviceReply reply = correct();
  reply.set_timer("replay");
  for (const v1::MeasureTrials::Item& item : request.items()) {
    const Loaded& trial = loaded(item.trial());
    const std::optional<FaultKind> fault =
        faults_.take(FaultPoint::Measure, place.problem, &trial.configuration);
    if (auto suffered = suffer(fault)) {
      return *suffered;
    }
    pace(item.samples());
    v1::MeasuredItem result = measured(request, item, trial);
    faults_.log(trial.key.hex() + ' ' + v1::SampleBlock::Stage_Name(request.stage()) + ' ' +
                std::to_string(item.first_sample()) + ' ' + std::to_string(item.samples()));
    result.mutable_conditions()->set_throttled(fault == FaultKind::Throttled);
    if (fault == FaultKind::Contended) {
      reply.set_foreign_use(true);
    }
    if (fault == FaultKind::WrongResult) {
      result.clear_samples_us();
      result.set_outcome(v1::WRONG_RESULT);
      result.set_detail("a byte was written behind a buffer (injected)");
    }
    if (fault == FaultKind::BelowFloor) {
      result.set_below_floor(true);
      result.set_floor_us(2 * result.samples_us(0));
      result.set_detail("injected: a sample below half of the floor");
    }
    reply.set_tick_us(trial.trial->tick_us);
    *reply.add_measured() = std::move(result);
  }
  return reply;
}

v1::DeviceReply ReplayDevice::release(const v1::ReleaseProblem& request) {
  setups_.erase(request.setup());
  return correct();
}

v1::DeviceReply ReplayDevice::probe(const v1::ProbeDevice&) {
  v1::DeviceReply reply = correct();
  return reply;
}

}  // namespace

std::unique_ptr<DeviceBackend> make_replay_device(const std::vector<std::string>& arguments) {
  const bool with_faults = arguments.size() == 4 && arguments[2] == "--faults";
  if (arguments.size() < 2 || arguments[0] != "--replay" || (arguments.size() != 2 && !with_faults)) {
    throw Error(ErrorCode::InvalidArgument, "cubind-worker device",
                "expected --replay TABLE [--faults FILE]");
  }
  const std::string& file = arguments[1];
  return std::make_unique<ReplayDevice>(ReplayTable(read_table(read_file(file), file), file),
                                        with_faults ? ReplayFaults::read(arguments[3]) : ReplayFaults());
}

}  // namespace cubind::worker
