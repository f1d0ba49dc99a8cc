#include "server/jobs/grant.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr std::size_t kLongestDetail = 200;

void add_known_work(Lease& lease, const OfferedDevice& device, StoreReader& reader) {
  const TrialGroup group{lease.job.question.kernel, lease.job.question.problem,
                         lease.job.question.device_class, lease.job.question.policy,
                         driver_branch(device.driver.version)};
  lease.blocks = reader.blocks_of(group, lease.job.series);
  lease.verifications = reader.verifications_of(group, lease.job.series);
  for (TrialRow& trial : reader.trials(group)) {
    if (trial.series != lease.job.series && trial.outcome != Outcome::Compile) {
      continue;
    }
    trial.key.full.clear();
    trial.detail = cut_utf8(trial.detail, kLongestDetail);
    lease.trials.push_back(std::move(trial));
  }
  lease.artifacts = reader.artifacts_of(group);
  for (ArtifactRow& artifact : lease.artifacts) {
    artifact.key.full.clear();
  }
}

/// The measured winner so far, under the same driver branch; null: there is none. An imported or provisional
/// one is never an incumbent.
RecordPtr incumbent(const Lease& lease, const OfferedDevice& device, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(lease.job.question);
  if (!records) {
    return nullptr;
  }
  const auto found = records->by_problem.find(to_string(lease.job.question.problem));
  if (found == records->by_problem.end()) {
    return nullptr;
  }
  for (const RecordPtr& record : found->second) {
    if (was_measured_here(*record) && !record->provisional &&
        driver_branch(record->driver.version) == driver_branch(device.driver.version)) {
      return record;
    }
  }
  return nullptr;
}

}  // namespace

void fill_lease(Lease& lease, const KernelEntry& kernel, const OfferedDevice* device, Store& store,
                const IndexSnapshot& index) {
  lease.spec = kernel.spec->bundle;
  if (!device) {
    return;
  }
  store.read([&](StoreReader& reader) { add_known_work(lease, *device, reader); });
  lease.incumbent = incumbent(lease, *device, index);
  Question question;
  question.spec = kernel.spec;
  question.key = lease.job.question;
  question.device = device->device;
  lease.hints = neighbouring_winners(question, index);
}

}  // namespace cubind
