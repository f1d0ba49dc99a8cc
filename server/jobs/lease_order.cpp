#include "server/jobs/lease_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {

int LeaseOrder::rank(const OpenJob& job) const {
  // Compiles are short and a caller waits for them, unless there is an answer already.
  if (!measures(job.row)) {
    return 0;
  }
  if (only_when_idle(job.row)) {
    return 3;
  }
  return job.is_awaited ? 1 : 2;
}

std::vector<std::string> LeaseOrder::ranked_jobs() const {
  std::map<std::string, std::uint32_t> turns;  // by caller
  for (const auto& [lease, job] : leases_.held()) {
    turns[job->caller] += measures(job->row) ? 0 : 1;
  }
  std::vector<std::tuple<int, std::uint32_t, std::string>> ranked;
  for (const OpenJob& job : jobs_.all()) {
    if (is_queued(job)) {
      const std::uint32_t turn = measures(job.row) ? 0 : turns[job.caller]++;
      ranked.emplace_back(rank(job), turn, job.row.id);
    }
  }
  std::ranges::stable_sort(ranked, {},
                           [](const auto& one) { return std::pair(std::get<0>(one), std::get<1>(one)); });
  std::vector<std::string> ids;
  for (auto& [order, turn, id] : ranked) {
    ids.push_back(std::move(id));
  }
  return ids;
}

bool LeaseOrder::is_queued(const OpenJob& job) const {
  return !job.lease && clock_.steady_now() >= job.not_before && owners_.may_run_here(job);
}

bool LeaseOrder::is_measured_by_another(const OpenJob& job) const {
  if (!measures(job.row)) {
    return false;
  }
  const RecordQuestion asked = job.measured();
  const auto shares = [&](const OpenJob& other) {
    if (&other == &job || !measures(other.row)) {
      return false;
    }
    const RecordQuestion measured = other.measured();
    return measured.problem == asked.problem && measured.device_class == asked.device_class &&
           measured.policy == asked.policy &&
           (measured.kernel == asked.kernel || source_of(measured.kernel) == source_of(asked.kernel));
  };
  return std::ranges::any_of(leases_.held(), [&](const auto& held) { return shares(*held.second); }) ||
         owners_.any_elsewhere(jobs_, shares);
}

OpenJob* LeaseOrder::next_behind(const OpenJob& leased, const JoinedAgent& agent,
                                 const std::vector<std::string>& ranked) const {
  for (const std::string& id : ranked) {
    OpenJob* job = jobs_.find(id);
    if (job && is_queued(*job) && !job->is_announced && measures(job->row) && !agent.is_leaving &&
        may_tune(agent.profile, job->needs) &&
        job->row.question.device_class == leased.row.question.device_class) {
      return job;
    }
  }
  return nullptr;
}

bool LeaseOrder::only_when_idle(const JobRow& row) const {
  if (!measures(row) || !row.listed.empty() || row.fact.retune()) {
    return measures(row) && !row.listed.empty();
  }
  const RecordPtr record = latest_measurement(row.question, *index_.snapshot());
  return record && record->provisional;
}

std::uint32_t LeaseOrder::last_series(StoreReader& reader, const RecordQuestion& question) const {
  return reader.last_series(question, source_of(question.kernel));
}

Digest LeaseOrder::source_of(const std::string& kernel) const {
  try {
    return source_digest(*kernels_.find(kernel)->spec);
  } catch (const Error&) {
    return {};  // it has gone: no lease of its jobs is granted
  }
}

}  // namespace cubind
