#include "server/jobs/lease_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/kernel_library.hpp"

namespace cubind {

int LeaseOrder::rank(const OpenJob& job) const {
  // Compiles are short and a caller waits for them, unless there is an answer already.
  if (job.row.kind == v1::Job::COMPILE_WINNER) {
    return 0;
  }
  if (only_when_idle(job.row)) {
    return 3;
  }
  return job.is_awaited ? 1 : 2;
}

std::vector<std::string> LeaseOrder::ranked_jobs() const {
  std::map<std::string, std::uint32_t> turns;  // by caller
  for (const auto& [lease, job] : jobs_.leased()) {
    turns[job->caller] += job->row.kind == v1::Job::COMPILE_WINNER ? 1 : 0;
  }
  const auto now = clock_.steady_now();
  std::vector<std::tuple<int, std::uint32_t, std::string>> ranked;
  for (const OpenJob& job : jobs_.all()) {
    if (!job.lease && now >= job.not_before && owners_.may_run_here(job)) {
      const std::uint32_t turn = job.row.kind == v1::Job::COMPILE_WINNER ? turns[job.caller]++ : 0;
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

bool LeaseOrder::is_measured_by_another(const OpenJob& job) const {
  const RecordQuestion asked = job.measured();
  return job.row.kind == v1::Job::TUNE && std::ranges::any_of(jobs_.all(), [&](const OpenJob& other) {
           const RecordQuestion measured = other.measured();
           return &other != &job && other.row.kind == v1::Job::TUNE &&
                  (other.lease || owners_.is_elsewhere(other)) && measured.problem == asked.problem &&
                  measured.device_class == asked.device_class && measured.policy == asked.policy &&
                  (measured.kernel == asked.kernel || source_of(measured.kernel) == source_of(asked.kernel));
         });
}

OpenJob* LeaseOrder::next_behind(const OpenJob& leased, const JoinedAgents& agents) {
  const auto now = clock_.steady_now();
  const auto agent = agents.find(leased.lease->agent);
  if (agent == agents.end() || agent->second.is_leaving) {
    return nullptr;
  }
  OpenJob* next = nullptr;
  for (OpenJob& job : jobs_.all()) {
    const bool is_queued = !job.lease && !job.is_announced && job.row.kind == v1::Job::TUNE &&
                           owners_.may_run_here(job) && now >= job.not_before &&
                           may_tune(agent->second.profile, job.needs) &&
                           job.row.question.device_class == leased.row.question.device_class;
    if (is_queued && (next == nullptr || rank(job) < rank(*next))) {
      next = &job;
    }
  }
  return next;
}

bool LeaseOrder::only_when_idle(const JobRow& row) const {
  return row.kind == v1::Job::TUNE &&
         (!row.listed.empty() || (!row.fact.retune() && has_provisional_record(row.question)));
}

bool LeaseOrder::has_provisional_record(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index_.snapshot());
  return record && record->provisional;
}

Digest LeaseOrder::source_of(const std::string& kernel) const {
  try {
    return source_digest(*kernels_.find(kernel)->spec);
  } catch (const Error&) {
    return {};  // it has gone: no lease of its jobs is granted
  }
}

}  // namespace cubind
