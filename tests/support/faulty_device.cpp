#include "tests/support/faulty_device.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "plan/wire.hpp"
#include "tests/support/replay_faults.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/gpu_lock.hpp"

namespace cubind::test {
namespace {

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

// The fault's reply, or none where the request goes on. A hang does not return.
std::optional<v1::DeviceReply> suffer(std::optional<FaultKind> fault) {
  if (!fault) {
    return std::nullopt;
  }
  switch (*fault) {
    case FaultKind::Hang:
      hang();
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
      v1::DeviceReply reply = failed(v1::CORRECT, "");
      reply.set_foreign_use(true);
      return reply;
    }
    case FaultKind::TooManyRegisters:
    case FaultKind::WrongResult:
    case FaultKind::OtherBits:
    case FaultKind::Contended:
      break;
  }
  return std::nullopt;
}

void spoil(v1::VerificationResult& result, std::optional<FaultKind> fault) {
  if (fault == FaultKind::OtherBits) {
    result.set_same_bits(false);
  }
  if (fault == FaultKind::WrongResult) {
    result.set_outcome(v1::WRONG_RESULT);
    result.set_detail("injected");
    result.set_mismatches(1);
  }
}

void spoil(v1::MeasuredItem& item, std::optional<FaultKind> fault) {
  if (fault == FaultKind::WrongResult) {
    item.clear_samples_us();
    item.set_outcome(v1::WRONG_RESULT);
    item.set_detail("a byte was written behind a buffer (injected)");
  }
}

struct Setup {
  Problem problem;
  std::uint64_t bytes = 0;
};

struct Trial {
  Problem problem;
  Configuration configuration;
  std::string key_hex;
};

class FaultyDevice final : public worker::DeviceBackend {
 public:
  FaultyDevice(std::unique_ptr<DeviceBackend> device, ReplayFaults faults)
      : device_(std::move(device)), faults_(std::move(faults)) {}

  void set_lend(worker::Lend lend) override { lend_ = std::move(lend); }
  v1::DeviceReply open(const v1::OpenDevice& request) override;
  v1::DeviceReply prepare(const v1::PrepareProblem& request) override;
  v1::DeviceReply load(const v1::LoadTrial& request) override;
  v1::DeviceReply verify(const v1::VerifyTrial& request) override;
  v1::DeviceReply measure(const v1::MeasureTrials& request) override;
  void unload(std::uint32_t trial) override;
  v1::DeviceReply release(const v1::ReleaseProblem& request) override;
  v1::DeviceReply probe(const v1::ProbeDevice& request) override {
    return beside_others(device_->probe(request));
  }

 private:
  void pace(std::uint32_t steps) const { std::this_thread::sleep_for(faults_.pace() * steps); }
  void lock(const std::string& uuid);
  /// The reply with what a GPU says of its users.
  v1::DeviceReply beside_others(v1::DeviceReply reply) const;
  // OUT_OF_MEMORY as a GPU with so little memory would say it; none: it fits.
  std::optional<v1::DeviceReply> refuse_for_memory(std::uint64_t bytes) const;

  const std::unique_ptr<DeviceBackend> device_;
  const ReplayFaults faults_;
  worker::Lend lend_;
  std::optional<worker::GpuLock> lock_;
  std::uint64_t memory_limit_ = 0;  // 0: none
  std::map<std::uint32_t, Setup> setups_;
  std::map<std::uint32_t, Trial> trials_;
};

void FaultyDevice::lock(const std::string& uuid) {
  if (faults_.lock_folder().empty() || lock_) {
    return;
  }
  lock_ = worker::GpuLock::try_acquire(faults_.lock_folder(), uuid);
  if (!lock_) {
    throw Error(ErrorCode::Aborted, uuid, "another tuner holds this device");
  }
}

v1::DeviceReply FaultyDevice::beside_others(v1::DeviceReply reply) const {
  const worker::GpuUse now{.processes = faults_.living_users()};
  const std::string others = worker::Consent(now).others(now, 0, true, lend_);
  if (!others.empty()) {
    reply.set_foreign_use(true);
    reply.set_foreign_because(others);
  }
  return reply;
}

std::optional<v1::DeviceReply> FaultyDevice::refuse_for_memory(std::uint64_t bytes) const {
  std::uint64_t taken = 0;
  for (const auto& [number, setup] : setups_) {
    taken += setup.bytes;
  }
  if (memory_limit_ == 0 || taken + bytes <= memory_limit_) {
    return std::nullopt;
  }
  return failed(v1::OUT_OF_MEMORY, std::to_string(bytes) + " bytes in addition to the " +
                                       std::to_string(taken) + " in use exceed the share of " +
                                       std::to_string(memory_limit_) + " bytes (--memory-fraction)");
}

v1::DeviceReply FaultyDevice::open(const v1::OpenDevice& request) {
  setups_.clear();
  trials_.clear();
  v1::DeviceReply reply = device_->open(request);
  v1::DeviceInfo& info = *reply.mutable_info();
  lock(info.uuid());
  if (const auto lost = suffer(faults_.take(FaultPoint::Open, {}, nullptr)); lost && lost->sticky()) {
    throw Error(ErrorCode::Unavailable, info.uuid(), lost->detail());
  }
  if (!faults_.driver().empty()) {
    info.mutable_driver()->set_version(faults_.driver());
  }
  if (const std::uint64_t free = faults_.free_memory_bytes(); free > 0) {
    memory_limit_ = verify::memory_share(request.memory_fraction(), free);
    info.set_free_memory_bytes(free);
    info.set_memory_limit_bytes(memory_limit_);
  }
  return beside_others(std::move(reply));
}

v1::DeviceReply FaultyDevice::prepare(const v1::PrepareProblem& request) {
  faults_.wait_while_held();
  v1::ReleaseProblem before;
  before.set_setup(request.setup());
  release(before);
  Setup setup{problem_from_wire(request.problem(), "problem"), verify::setup_bytes(request)};
  if (auto full = refuse_for_memory(setup.bytes)) {
    return *full;
  }
  if (auto fault = suffer(faults_.take(FaultPoint::Prepare, setup.problem, nullptr))) {
    return *fault;
  }
  setups_[request.setup()] = std::move(setup);
  return beside_others(device_->prepare(request));
}

v1::DeviceReply FaultyDevice::load(const v1::LoadTrial& request) {
  faults_.wait_while_held();
  Trial trial{setups_[request.setup()].problem,
              configuration_from_wire(request.configuration(), "configuration"),
              Digest::from_bytes(request.trial_key()).value_or(Digest{}).hex()};
  const std::optional<FaultKind> fault = faults_.take(FaultPoint::Load, trial.problem, &trial.configuration);
  if (auto suffered = suffer(fault)) {
    return *suffered;
  }
  pace(1);
  v1::DeviceReply reply = device_->load(request);
  if (fault == FaultKind::TooManyRegisters) {
    for (v1::LoadedEntry& entry : *reply.mutable_entries()) {
      entry.set_max_threads_per_block(1);
    }
  }
  trials_[request.trial()] = std::move(trial);
  return beside_others(std::move(reply));
}

v1::DeviceReply FaultyDevice::verify(const v1::VerifyTrial& request) {
  faults_.wait_while_held();
  const Configuration& configuration = trials_[request.trial()].configuration;
  const std::optional<FaultKind> fault =
      faults_.take(FaultPoint::Verify, setups_[request.setup()].problem, &configuration);
  if (auto suffered = suffer(fault)) {
    return *suffered;
  }
  pace(1);
  v1::DeviceReply reply = device_->verify(request);
  spoil(*reply.mutable_verification(), fault);
  reply.set_outcome(reply.verification().outcome());
  return beside_others(std::move(reply));
}

v1::DeviceReply FaultyDevice::measure(const v1::MeasureTrials& request) {
  faults_.wait_while_held();
  std::vector<std::optional<FaultKind>> faults;
  for (const v1::MeasureTrials::Item& item : request.items()) {
    const Trial& trial = trials_[item.trial()];
    faults.push_back(
        faults_.take(FaultPoint::Measure, setups_[request.setup()].problem, &trial.configuration));
    if (auto suffered = suffer(faults.back())) {
      return *suffered;
    }
    pace(item.samples());
    faults_.log(trial.key_hex + ' ' + v1::SampleBlock::Stage_Name(request.stage()) + ' ' +
                std::to_string(item.first_sample()) + ' ' + std::to_string(item.samples()));
  }
  v1::DeviceReply reply = device_->measure(request);
  for (int i = 0; i < reply.measured_size(); ++i) {
    const std::optional<FaultKind> fault = faults[static_cast<std::size_t>(i)];
    spoil(*reply.mutable_measured(i), fault);
    reply.set_foreign_use(reply.foreign_use() || fault == FaultKind::Contended);
  }
  return beside_others(std::move(reply));
}

void FaultyDevice::unload(std::uint32_t trial) {
  trials_.erase(trial);
  device_->unload(trial);
}

v1::DeviceReply FaultyDevice::release(const v1::ReleaseProblem& request) {
  setups_.erase(request.setup());
  return device_->release(request);
}

}  // namespace

std::unique_ptr<worker::DeviceBackend> make_faulty_device(const std::vector<std::string>& arguments,
                                                          const std::string& faults_file) {
  return std::make_unique<FaultyDevice>(worker::make_replay_device(arguments),
                                        ReplayFaults::read(faults_file));
}

std::unique_ptr<worker::DeviceBackend> make_faulty_device(const std::vector<std::string>& arguments) {
  const char* file = std::getenv("CUBIND_REPLAY_FAULTS");
  if (file == nullptr) {
    throw Error(ErrorCode::InvalidArgument, "CUBIND_REPLAY_FAULTS", "is not set");
  }
  return make_faulty_device(arguments, file);
}

}  // namespace cubind::test
