// The device backend of real GPUs.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/cubin_entries.hpp"
#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/device_outcome.hpp"
#include "tuner/worker/measurement.hpp"
#include "tuner/worker/module_state.hpp"
#include "tuner/worker/started_driver.hpp"
#include "tuner/worker/verification.hpp"

namespace cubind::worker {
namespace {

constexpr std::uint64_t kWarmUpClocks = 200'000;  // of one launch: 0.1 ms

class CudaDevice final : public DeviceBackend {
 public:
  void set_lend(Lend lend) override;
  v1::DeviceReply open(const v1::OpenDevice& request) override;
  v1::DeviceReply prepare(const v1::PrepareProblem& request) override;
  v1::DeviceReply load(const v1::LoadTrial& request) override;
  v1::DeviceReply verify(const v1::VerifyTrial& request) override;
  v1::DeviceReply measure(const v1::MeasureTrials& request) override;
  void unload(std::uint32_t trial) override { forget(trial); }
  v1::DeviceReply release(const v1::ReleaseProblem& request) override;
  v1::DeviceReply probe(const v1::ProbeDevice& request) override;

 private:
  GpuSession& session() {
    if (!session_) {
      throw Error(ErrorCode::FailedPrecondition, "device worker", "open comes first");
    }
    return *session_;
  }
  void forget(std::uint32_t trial) {
    states_.erase(trial);
    trials_.erase(trial);
    have_run_.erase(trial);
  }
  bool keeps_session(const v1::OpenDevice& request) const;
  v1::DeviceReply open_anew();
  v1::DeviceReply opened();
  ProblemSetup& setup(std::uint32_t number);
  const LoadedModule& trial(std::uint32_t number) const;
  v1::DeviceReply reply();
  v1::DeviceReply reply(const DeviceFailure& failure);
  v1::DeviceReply measured(const v1::MeasureTrials& request, const v1::MeasureTrials::Item*& culprit);
  std::optional<std::string> run_first(const v1::MeasureTrials& request, const v1::MeasureTrials::Item& item);
  std::vector<v1::MeasuredItem> measure_all(const v1::MeasureTrials& request, bool poisons = false);
  std::vector<v1::MeasuredItem> measure_untrusted(v1::MeasureTrials request);

  const StartedDriver driver_;
  MeasureSettings settings_;
  Lend lend_;
  std::unique_ptr<GpuSession> session_;
  std::map<std::uint32_t, std::unique_ptr<ProblemSetup>> setups_;
  std::map<std::uint32_t, std::unique_ptr<LoadedModule>> trials_;
  std::map<std::uint32_t, ModuleState> states_;  // of untrusted trials
  std::set<std::uint32_t> have_run_;             // since they were loaded
};

void set_others(v1::DeviceReply& reply, const std::string& others) {
  reply.set_foreign_use(!others.empty());
  reply.set_foreign_because(others);
}

v1::MeasuredItem failed_item(const v1::MeasureTrials::Item& item, v1::Outcome outcome,
                             const std::string& detail) {
  v1::MeasuredItem failed;
  failed.set_trial(item.trial());
  failed.set_outcome(outcome);
  failed.set_detail(detail);
  return failed;
}

ProblemSetup& CudaDevice::setup(std::uint32_t number) {
  const auto found = setups_.find(number);
  if (found == setups_.end()) {
    throw Error(ErrorCode::InvalidArgument, "setup " + std::to_string(number), "was not prepared");
  }
  return *found->second;
}

const LoadedModule& CudaDevice::trial(std::uint32_t number) const {
  const auto found = trials_.find(number);
  if (found == trials_.end()) {
    throw Error(ErrorCode::InvalidArgument, "trial " + std::to_string(number), "was not loaded");
  }
  return *found->second;
}

v1::DeviceReply CudaDevice::reply() {
  v1::DeviceReply reply;
  reply.set_outcome(v1::CORRECT);
  reply.set_allocated_bytes(session().allocated_bytes());
  if (session().active()) {
    reply.set_timer(session().timer().name());
    reply.set_tick_us(session().timer().tick_us());
  }
  return reply;
}

v1::DeviceReply CudaDevice::reply(const DeviceFailure& failure) {
  v1::DeviceReply failed = failure.sticky ? v1::DeviceReply() : reply();
  report(failure, failed);
  return failed;
}

void CudaDevice::set_lend(Lend lend) {
  lend_ = std::move(lend);
  if (session_) {
    session_->set_lend(lend_);
  }
}

v1::DeviceReply CudaDevice::open(const v1::OpenDevice& request) {
  // Objects of an earlier open go before its context does.
  states_.clear();
  trials_.clear();
  have_run_.clear();
  setups_.clear();
  if (keeps_session(request)) {
    return open_anew();
  }
  session_.reset();
  try {
    session_ = std::make_unique<GpuSession>(request, lend_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Aborted) {
      throw;
    }
    v1::DeviceReply taken;
    taken.set_detail(error.what());
    set_others(taken, "another tuner uses the GPU");
    return taken;
  }
  if (session_->others().empty()) {
    session_->activate();
  }
  return opened();
}

bool CudaDevice::keeps_session(const v1::OpenDevice& request) const {
  return session_ && session_->active() &&
         session_->request().SerializeAsString() == request.SerializeAsString();
}

// The context of the earlier job stays, and what depends on no problem: its timer, the flush buffer.
v1::DeviceReply CudaDevice::open_anew() {
  try {
    session_->begin_anew();
  } catch (...) {
    const auto failure = current_failure();
    if (!failure) {
      throw;
    }
    return reply(*failure);
  }
  session_->others();
  return opened();
}

v1::DeviceReply CudaDevice::opened() {
  v1::DeviceReply done = reply();
  *done.mutable_info() = session_->info();
  set_others(done, session_->others_lately());
  return done;
}

v1::DeviceReply CudaDevice::prepare(const v1::PrepareProblem& request) {
  setups_.erase(request.setup());
  std::optional<std::string> vacuity;
  try {
    session().activate();
    auto made =
        std::make_unique<ProblemSetup>(session().context(), session().budget(), session().kernels(), request);
    if (request.find_vacuity()) {
      vacuity = made->find_vacuity();
    } else {
      made->prepare_verification(0);
    }
    setups_[request.setup()] = std::move(made);
    session().worked();
    // Now, while the first configurations are compiled.
    TimedWork spinning;
    spinning.timed = [this] { session().kernels().spin(kWarmUpClocks); };
    warm_up_with(session(), spinning, settings_);
  } catch (...) {
    const auto failure = current_failure();
    if (!failure || !session_) {
      throw;
    }
    return reply(*failure);
  }
  v1::DeviceReply prepared = reply();
  prepared.set_vacuity(vacuity.value_or(""));
  set_others(prepared, session().others());
  *prepared.mutable_info() = session().info();
  return prepared;
}

v1::DeviceReply CudaDevice::load(const v1::LoadTrial& request) {
  forget(request.trial());
  try {
    session().activate();
    const std::vector<std::string> symbols(request.entry_symbols().begin(), request.entry_symbols().end());
    auto loaded =
        std::make_unique<LoadedModule>(session().context().api(), request.cubin(), symbols, "a trial");
    v1::DeviceReply done = reply();
    set_others(done, session().others_lately());
    for (v1::LoadedEntry& entry : loaded_entries(*loaded)) {
      *done.add_entries() = std::move(entry);
    }
    if (request.untrusted()) {
      states_.try_emplace(request.trial(), session().context(), session().budget(), *loaded,
                          changeable_variables(request.cubin()));
    }
    trials_[request.trial()] = std::move(loaded);
    return done;
  } catch (...) {
    const auto failure = current_failure();
    if (!failure || !session_) {
      throw;
    }
    return reply(*failure);
  }
}

v1::DeviceReply CudaDevice::verify(const v1::VerifyTrial& request) {
  ProblemSetup& problem = setup(request.setup());
  const LoadedModule& module = trial(request.trial());
  try {
    const v1::VerificationResult result = verify_variant(session(), problem, module, request);
    v1::DeviceReply done = reply();
    set_others(done, session().others());
    done.set_outcome(result.outcome());
    done.set_detail(result.detail());
    *done.mutable_verification() = result;
    if (result.outcome() != v1::CORRECT) {
      return done;
    }
    for (const v1::OutputParts& parts : request.hashed()) {
      done.add_hashes(problem.hash_of(parts));
    }
    return done;
  } catch (...) {
    const auto failure = current_failure();
    if (!failure) {
      throw;
    }
    problem.distrust();
    return reply(*failure);
  }
}

// Binding lets scratch grow as far as any item needs. If there are other items, this item's faults show here.
std::optional<std::string> CudaDevice::run_first(const v1::MeasureTrials& request,
                                                 const v1::MeasureTrials::Item& item) {
  ProblemSetup& problem = setup(request.setup());
  const BoundPlan plan = problem.bind(trial(item.trial()), plan_from_wire(item.plan(), "measure.plan"));
  const bool is_first = have_run_.insert(item.trial()).second;
  if (!is_first && !request.guarded()) {
    return std::nullopt;
  }
  auto damage = first_run(session(), problem, plan, request.guarded());
  if (request.items_size() > 1) {
    session().context().synchronize("the variant");
  }
  return damage;
}

std::vector<v1::MeasuredItem> CudaDevice::measure_all(const v1::MeasureTrials& request, bool poisons) {
  ProblemSetup& problem = setup(request.setup());
  std::vector<TimedWork> works;
  for (const v1::MeasureTrials::Item& item : request.items()) {
    const auto state = states_.find(item.trial());
    works.push_back(timed_work(session(), problem, trial(item.trial()), item.plan(),
                               {.poisons = poisons,
                                .input_seed = leaves_results(session()) ? request.input_seed() : 0,
                                .state = state == states_.end() ? nullptr : &state->second}));
  }
  if (request.warm_up()) {
    warm_up_with(session(), works.front(), settings_);
  }
  return measure_blocks(session(), problem.request(), works, request, settings_);
}

std::vector<v1::MeasuredItem> CudaDevice::measure_untrusted(v1::MeasureTrials request) {
  ProblemSetup& problem = setup(request.setup());
  const DrawnSample drawn = problem.draw(std::max(request.items(0).samples(), 1U));
  if (request.input_seed() != 0 && !leaves_results(session())) {
    problem.renew_slots(request.input_seed());
  }
  const auto items = std::exchange(*request.mutable_items(), {});
  std::vector<v1::MeasuredItem> measured;
  for (const v1::MeasureTrials::Item& item : items) {
    request.clear_items();
    *request.add_items() = item;
    request.mutable_items(0)->set_samples(drawn.samples);
    measured.push_back(measure_all(request, true).front());
    if (!item.untrusted() || !leaves_results(session())) {
      continue;
    }
    if (std::string fault = fault_of_sample(problem, drawn.back, request.input_seed()); !fault.empty()) {
      measured.back().set_outcome(v1::WRONG_RESULT);
      measured.back().set_below_floor(false);  // the detail is not about its time
      measured.back().set_detail(std::move(fault));
      problem.distrust();
      break;
    }
  }
  if (request.input_seed() != 0) {
    problem.forget_renewed();
  }
  return measured;
}

v1::DeviceReply CudaDevice::measure(const v1::MeasureTrials& request) {
  const std::string others_before = session().others_lately();
  const v1::MeasureTrials::Item* culprit = nullptr;
  v1::DeviceReply done;
  try {
    done = measured(request, culprit);
  } catch (...) {
    const auto failure = current_failure();
    if (!failure) {
      throw;
    }
    setup(request.setup()).distrust();
    if (failure->sticky || culprit == nullptr) {
      done = reply(*failure);
    } else {
      done = reply();
    }
    if (culprit != nullptr) {
      *done.add_measured() = failed_item(*culprit, failure->outcome, failure->detail);
    }
    if (failure->sticky) {
      return done;
    }
  }
  set_others(done, others_before.empty() ? session().others() : others_before);
  for (v1::MeasuredItem& item : *done.mutable_measured()) {
    item.mutable_conditions()->set_contended(done.foreign_use());
  }
  return done;
}

// `culprit`: the item that an exception is about. Unknown if several are enqueued at once.
v1::DeviceReply CudaDevice::measured(const v1::MeasureTrials& request,
                                     const v1::MeasureTrials::Item*& culprit) {
  ProblemSetup& problem = setup(request.setup());
  problem.prepare_timing();
  for (const v1::MeasureTrials::Item& item : request.items()) {
    culprit = &item;
    if (const auto damage = run_first(request, item)) {
      problem.distrust();
      v1::DeviceReply done = reply();
      *done.add_measured() = failed_item(item, v1::WRONG_RESULT, *damage);
      return done;
    }
  }
  culprit = request.items_size() == 1 ? culprit : nullptr;
  const bool is_untrusted =
      request.input_seed() != 0 || std::ranges::any_of(request.items(), &v1::MeasureTrials::Item::untrusted);
  v1::DeviceReply done = reply();
  for (v1::MeasuredItem& item : is_untrusted ? measure_untrusted(request) : measure_all(request)) {
    *done.add_measured() = std::move(item);
  }
  return done;
}

v1::DeviceReply CudaDevice::release(const v1::ReleaseProblem& request) {
  setups_.erase(request.setup());
  return reply();
}

v1::DeviceReply CudaDevice::probe(const v1::ProbeDevice&) {
  v1::DeviceReply probed = reply();
  set_others(probed, session().others());
  *probed.mutable_info() = session().info();
  return probed;
}

}  // namespace

std::unique_ptr<DeviceBackend> make_cuda_device() { return std::make_unique<CudaDevice>(); }

}  // namespace cubind::worker
