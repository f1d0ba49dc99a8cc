// The device backend of real GPUs.
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/device_outcome.hpp"
#include "tuner/worker/measurement.hpp"
#include "tuner/worker/started_driver.hpp"
#include "tuner/worker/verification.hpp"

namespace cubind::worker {
namespace {

class CudaDevice final : public DeviceBackend {
 public:
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
    trials_.erase(trial);
    have_run_.erase(trial);
  }
  bool keeps_session(const v1::OpenDevice& request) const;
  v1::DeviceReply open_anew();
  v1::DeviceReply opened(bool foreign);
  ProblemSetup& setup(std::uint32_t number);
  const LoadedCubin& trial(std::uint32_t number) const;
  v1::DeviceReply reply();
  v1::DeviceReply reply(const DeviceFailure& failure);
  v1::MeasuredItem measure_item(const v1::MeasureTrials& request, const v1::MeasureTrials::Item& item,
                                bool warm_up, bool& sticky);

  const StartedDriver driver_;
  MeasureSettings settings_;
  std::unique_ptr<GpuSession> session_;
  std::map<std::uint32_t, std::unique_ptr<ProblemSetup>> setups_;
  std::map<std::uint32_t, std::unique_ptr<LoadedCubin>> trials_;
  std::set<std::uint32_t> have_run_;  // since they were loaded
};

ProblemSetup& CudaDevice::setup(std::uint32_t number) {
  const auto found = setups_.find(number);
  if (found == setups_.end()) {
    throw Error(ErrorCode::InvalidArgument, "setup " + std::to_string(number), "was not prepared");
  }
  return *found->second;
}

const LoadedCubin& CudaDevice::trial(std::uint32_t number) const {
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

v1::DeviceReply CudaDevice::open(const v1::OpenDevice& request) {
  // Objects of an earlier open go before its context does.
  trials_.clear();
  have_run_.clear();
  setups_.clear();
  if (keeps_session(request)) {
    return open_anew();
  }
  session_.reset();
  try {
    session_ = std::make_unique<GpuSession>(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Aborted) {
      throw;
    }
    v1::DeviceReply taken;
    taken.set_detail(error.what());
    taken.set_foreign_use(true);
    return taken;
  }
  const bool foreign = session_->foreign_use();
  if (!foreign) {
    session_->activate();
  }
  return opened(foreign);
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
  return opened(session_->foreign_use());
}

v1::DeviceReply CudaDevice::opened(bool foreign) {
  v1::DeviceReply done = reply();
  *done.mutable_info() = session_->info();
  done.set_foreign_use(foreign);
  return done;
}

v1::DeviceReply CudaDevice::prepare(const v1::PrepareProblem& request) {
  setups_.erase(request.setup());
  try {
    session().activate();
    auto made =
        std::make_unique<ProblemSetup>(session().context(), session().budget(), session().kernels(), request);
    made->prepare_verification(0);
    setups_[request.setup()] = std::move(made);
    session().worked();
  } catch (...) {
    const auto failure = current_failure();
    if (!failure || !session_) {
      throw;
    }
    return reply(*failure);
  }
  v1::DeviceReply prepared = reply();
  prepared.set_foreign_use(session().foreign_use());
  *prepared.mutable_info() = session().info();
  return prepared;
}

v1::DeviceReply CudaDevice::load(const v1::LoadTrial& request) {
  forget(request.trial());
  try {
    session().activate();
    const std::vector<std::string> symbols(request.entry_symbols().begin(), request.entry_symbols().end());
    auto loaded = std::make_unique<LoadedCubin>(session().context(), request.cubin(), symbols);
    v1::DeviceReply done = reply();
    done.set_foreign_use(session().foreign_use());
    for (v1::LoadedEntry& entry : loaded->entries()) {
      *done.add_entries() = std::move(entry);
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
  const LoadedCubin& cubin = trial(request.trial());
  try {
    const v1::VerificationResult result = verify_variant(session(), problem, cubin, request);
    v1::DeviceReply done = reply();
    done.set_foreign_use(session().foreign_use());
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

v1::MeasuredItem CudaDevice::measure_item(const v1::MeasureTrials& request,
                                          const v1::MeasureTrials::Item& item, bool warm_up, bool& sticky) {
  ProblemSetup& problem = setup(request.setup());
  const LoadedCubin& cubin = trial(item.trial());
  try {
    problem.prepare_timing();
    const BoundPlan plan = problem.bind(cubin, item.plan());
    const bool is_first = have_run_.insert(item.trial()).second;
    const auto damage =
        is_first || request.guarded() ? first_run(session(), problem, plan, request.guarded()) : std::nullopt;
    if (damage) {
      problem.distrust();
      v1::MeasuredItem damaged;
      damaged.set_trial(item.trial());
      damaged.set_outcome(v1::WRONG_RESULT);
      damaged.set_detail(*damage);
      return damaged;
    }
    const TimedWork work = timed_work(session(), problem, cubin, item.plan());
    if (warm_up) {
      warm_up_with(session(), work, settings_);
    }
    return measure_block(session(), problem.request(), work, item, settings_);
  } catch (...) {
    const auto failure = current_failure();
    if (!failure) {
      throw;
    }
    problem.distrust();
    sticky = failure->sticky;
    v1::MeasuredItem failed;
    failed.set_trial(item.trial());
    failed.set_outcome(failure->outcome);
    failed.set_detail(failure->detail);
    return failed;
  }
}

v1::DeviceReply CudaDevice::measure(const v1::MeasureTrials& request) {
  const bool foreign_before = session().foreign_use();
  std::vector<v1::MeasuredItem> items;
  bool sticky = false;
  for (int i = 0; i < request.items_size() && !sticky; ++i) {
    items.push_back(measure_item(request, request.items(i), request.warm_up() && i == 0, sticky));
  }
  v1::DeviceReply done;
  if (sticky) {
    report({items.back().outcome(), items.back().detail(), true}, done);
  } else {
    done = reply();
    done.set_foreign_use(foreign_before || session().foreign_use());
  }
  for (v1::MeasuredItem& item : items) {
    item.mutable_conditions()->set_contended(done.foreign_use());
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
  probed.set_foreign_use(session().foreign_use());
  *probed.mutable_info() = session().info();
  return probed;
}

}  // namespace

std::unique_ptr<DeviceBackend> make_cuda_device() { return std::make_unique<CudaDevice>(); }

}  // namespace cubind::worker
