// A device that plays a table of recorded trials: no GPU, real processes above it. What it yields is evidence
// `replayed`.
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/replay_table.hpp"

namespace cubind::worker {
namespace {

constexpr std::size_t kMostRecorded =
    10'000;  // problems that are listed; a table with more is asked one by one
constexpr std::uint32_t kReplayedCuda = 13000;  // a recorded driver loads whatever NVRTC compiled here

v1::DeviceReply reply_of(v1::Outcome outcome, const std::string& detail = "") {
  v1::DeviceReply reply;
  reply.set_outcome(outcome);
  reply.set_detail(detail);
  return reply;
}

struct Setup {
  std::string kernel;
  Problem problem;
  std::string reference;
};

struct Loaded {
  const TableTrial* trial = nullptr;
  Digest key;
};

class ReplayDevice final : public DeviceBackend {
 public:
  explicit ReplayDevice(ReplayTable table) : table_(std::move(table)) {}

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
  v1::MeasuredItem measured(const v1::MeasureTrials& request, const v1::MeasureTrials::Item& item,
                            const Loaded& loaded) const;

  ReplayTable table_;
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

v1::DeviceReply ReplayDevice::open(const v1::OpenDevice&) {
  setups_.clear();
  loaded_.clear();
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  v1::DeviceInfo& info = *reply.mutable_info();
  *info.mutable_facts() = table_.facts();
  info.mutable_driver()->set_cuda(kReplayedCuda);
  info.mutable_driver()->set_version(table_.driver());
  info.set_uuid("replay-" + table_.digest().hex().substr(0, 12));
  info.set_timer("replay");
  info.set_free_memory_bytes(table_.facts().memory_bytes());
  for (std::string& problem : table_.recorded(kMostRecorded)) {
    info.add_recorded(std::move(problem));
  }
  info.set_consent_rule("a replayed table has no other user");
  reply.set_timer("replay");
  return reply;
}

v1::DeviceReply ReplayDevice::prepare(const v1::PrepareProblem& request) {
  setups_[request.setup()] = {request.kernel(), problem_from_wire(request.problem(), "problem"),
                              request.reference()};
  return reply_of(v1::CORRECT);
}

v1::DeviceReply ReplayDevice::load(const v1::LoadTrial& request) {
  const Setup& prepared = setup(request.setup());
  const Configuration configuration = configuration_from_wire(request.configuration(), "configuration");
  Loaded loaded;
  std::ranges::copy_n(
      request.trial_key().begin(),
      static_cast<std::ptrdiff_t>(std::min(request.trial_key().size(), loaded.key.bytes.size())),
      reinterpret_cast<char*>(loaded.key.bytes.data()));
  loaded.trial = table_.find(prepared.kernel, prepared.problem, configuration);
  if (!loaded.trial) {
    table_.require(prepared.kernel, prepared.problem);
    return reply_of(v1::LAUNCH, "not recorded: " + prepared.kernel + " at " + to_string(prepared.problem) +
                                    " with " + to_string(configuration));
  }
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  for (const std::string& symbol : request.entry_symbols()) {
    v1::LoadedEntry& entry = *reply.add_entries();
    entry.set_entry_symbol(symbol);
    entry.set_max_threads_per_block(kMaxThreadsPerBlock);
  }
  loaded_[request.trial()] = loaded;
  return reply;
}

v1::DeviceReply ReplayDevice::verify(const v1::VerifyTrial& request) {
  const Loaded& trial = loaded(request.trial());
  const Setup& prepared = setup(request.setup());
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  v1::VerificationResult& result = *reply.mutable_verification();
  result.set_outcome(v1::CORRECT);
  result.set_reference(prepared.reference);
  result.set_same_bits(true);
  result.set_after_timing(request.after_timing());
  // If the table has no verification of this trial on a problem, the recording did not need one.
  for (const VerificationResult& recorded : trial.trial->verifications) {
    if (problem_from_wire(recorded.problem(), "problem") != prepared.problem ||
        recorded.after_timing() != request.after_timing()) {
      continue;
    }
    result.set_outcome(recorded.outcome());
    result.set_worst_excess(recorded.worst_excess());
    result.set_same_bits(recorded.same_bits());
    result.set_blank_share(recorded.blank_share());
    result.set_blank_output(recorded.blank_output());
  }
  // A trial that is wrong although no verification was recorded as wrong fails each.
  const bool fails_each = std::ranges::all_of(
      trial.trial->verifications, [](const auto& recorded) { return recorded.outcome() == v1::CORRECT; });
  if (trial.trial->outcome == Outcome::WrongResult && fails_each) {
    result.set_outcome(v1::WRONG_RESULT);
  }
  if (result.outcome() == v1::WRONG_RESULT) {
    result.set_detail(trial.trial->header.detail());
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
  *result.mutable_conditions() = ReplayTable::clocks(*loaded.trial);
  result.set_outcome(v1::CORRECT);
  const Outcome outcome = loaded.trial->outcome;
  if (outcome != Outcome::Correct && outcome != Outcome::WrongResult && outcome != Outcome::Unverified) {
    result.set_outcome(to_wire(loaded.trial->outcome));
    result.set_detail(loaded.trial->header.detail());
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
  v1::DeviceReply reply = reply_of(v1::CORRECT);
  reply.set_timer("replay");
  for (const v1::MeasureTrials::Item& item : request.items()) {
    const Loaded& trial = loaded(item.trial());
    reply.set_tick_us(trial.trial->tick_us);
    *reply.add_measured() = measured(request, item, trial);
  }
  return reply;
}

v1::DeviceReply ReplayDevice::release(const v1::ReleaseProblem& request) {
  setups_.erase(request.setup());
  return reply_of(v1::CORRECT);
}

v1::DeviceReply ReplayDevice::probe(const v1::ProbeDevice&) { return reply_of(v1::CORRECT); }

}  // namespace

std::unique_ptr<DeviceBackend> make_replay_device(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || arguments[0] != "--replay") {
    throw Error(ErrorCode::InvalidArgument, "cubind-worker device", "expected --replay TABLE");
  }
  const std::string& file = arguments[1];
  return std::make_unique<ReplayDevice>(ReplayTable(read_table(read_file(file), file), file));
}

}  // namespace cubind::worker
