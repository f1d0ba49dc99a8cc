#include "server/jobs/grant.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/hints.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr std::size_t kLongestDetail = 200;
// Of the problems that are compiled alike. Each has mostly the same artifacts.
constexpr std::size_t kAlikeProblems = 4;

/// Whether a retune does not try the configuration again: what failed before it could be verified fails until
/// its key changes, and may cost a worker and a deadline each time.
bool outlives_series(Outcome outcome) {
  return outcome == Outcome::Compile || outcome == Outcome::Constraint || outcome == Outcome::Launch ||
         outcome == Outcome::Runtime || outcome == Outcome::Timeout;
}

void add_trials(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, StoreReader& reader) {
  const TrialGroup group{lease.job.question.kernel,  source_digest(spec),
                         lease.job.question.problem, lease.job.question.device_class,
                         lease.job.question.policy,  driver_branch(device.driver.version)};
  lease.blocks = reader.blocks_of(group, lease.job.fact.series());
  lease.verifications = reader.verifications_of(group, lease.job.fact.series());
  for (TrialRow& trial : reader.trials(group)) {
    if (trial.series != lease.job.fact.series() && !outlives_series(trial.outcome)) {
      continue;
    }
    trial.key.full.clear();
    trial.header().set_detail(cut_utf8(trial.header().detail(), kLongestDetail));
    lease.trials.push_back(std::move(trial));
  }
}

bool are_compiled_alike(const KernelSpec& spec, const Problem& a, const Problem& b) {
  return artifact_source(spec, a, spec.defaults.front(), "") ==
         artifact_source(spec, b, spec.defaults.front(), "");
}

/// Problems with a record that differ from this one in nothing that is compiled in.
std::vector<Problem> problems_compiled_alike(const Lease& lease, const KernelSpec& spec,
                                             const IndexSnapshot& index) {
  std::vector<Problem> alike;
  const ClassRecords* records = index.records(lease.job.question);
  if (!records || spec.defaults.empty()) {
    return alike;
  }
  for (const auto& [name, of_problem] : records->by_problem) {
    const Problem& problem = of_problem.front()->question.problem;
    if (alike.size() < kAlikeProblems && problem != lease.job.question.problem &&
        are_compiled_alike(spec, problem, lease.job.question.problem)) {
      alike.push_back(problem);
    }
  }
  return alike;
}

/// The trials of the question and of those problems.
std::vector<TrialGroup> groups_compiled_alike(const Lease& lease, const KernelSpec& spec,
                                              const OfferedDevice& device, const IndexSnapshot& index) {
  const RecordQuestion& question = lease.job.question;
  std::vector<Problem> problems = problems_compiled_alike(lease, spec, index);
  problems.push_back(question.problem);
  std::vector<TrialGroup> groups;
  for (Problem& problem : problems) {
    groups.push_back({question.kernel, source_digest(spec), std::move(problem), question.device_class,
                      question.policy, driver_branch(device.driver.version)});
  }
  return groups;
}

/// The measured winner so far, under the same driver branch and flush method where the job searches; null:
/// there is none. An imported or provisional one is never an incumbent.
RecordPtr incumbent(const Lease& lease, const OfferedDevice& device, const IndexSnapshot& index) {
  if (!lease.job.listed.empty()) {
    const RecordPtr latest = latest_measurement(lease.job.question, index);
    return latest && !latest->provisional ? latest : nullptr;
  }
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
        record->question.policy == lease.job.question.policy &&
        driver_branch(record->driver.version) == driver_branch(device.driver.version)) {
      return record;
    }
  }
  return nullptr;
}

/// What was screened in the latest series for a record's question.
std::vector<Configuration> tried_for(const RecordRow& record, StoreReader& reader) {
  const RecordQuestion& question = record.question;
  return reader.fastest_screened({question.kernel,
                                  {},
                                  question.problem,
                                  question.device_class,
                                  question.policy,
                                  driver_branch(record.driver.version)},
                                 reader.last_series(question, {}), kMostHints);
}

}  // namespace

void fill_search(Lease& lease, const KernelEntry& kernel, const OfferedDevice* device, Store& store,
                 const IndexSnapshot& index) {
  lease.spec = kernel.spec->bundle;
  if (!device || lease.job.fact.from_scratch()) {
    return;
  }
  lease.incumbent = incumbent(lease, *device, index);
  if (lease.job.fact.fence() > 0 || !lease.job.listed.empty()) {  // it was leased before, or searches nothing
    return;
  }
  Question question;
  question.spec = kernel.spec;
  question.key = lease.job.question;
  question.device = device->device;
  store.read([&](StoreReader& reader) {
    lease.job.hints =
        search_hints(question, index, [&](const RecordRow& record) { return tried_for(record, reader); });
  });
}

void fill_known_work(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                     const IndexSnapshot& index) {
  store.read([&](StoreReader& reader) {
    add_trials(lease, spec, device, reader);
    lease.artifacts = reader.artifacts_of(groups_compiled_alike(lease, spec, device, index));
  });
  for (ArtifactRow& artifact : lease.artifacts) {
    artifact.key.full.clear();
  }
}

void fill_artifact_keys(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                        const IndexSnapshot& index) {
  store.read([&](StoreReader& reader) {
    for (const Digest& key : reader.artifact_keys_of(groups_compiled_alike(lease, spec, device, index))) {
      lease.artifacts.emplace_back().key.digest = key;
    }
  });
}

}  // namespace cubind
