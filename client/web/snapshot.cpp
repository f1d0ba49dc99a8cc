#include "client/web/snapshot.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "client/connection.hpp"

namespace cubind::web {
namespace {

constexpr std::chrono::seconds kFresh{1}, kEndedJobsFresh{15}, kRecordsFresh{60};
constexpr std::chrono::milliseconds kDeadline{10'000};

}  // namespace

std::shared_ptr<const Snapshot> Snapshots::now() {
  const std::lock_guard lock(mutex_);
  if (!last_ || clock_.steady_now() - last_at_ >= kFresh) {
    last_ = read();
    last_at_ = clock_.steady_now();
  }
  return last_;
}

std::shared_ptr<const Snapshot> Snapshots::read() {
  const Connection connection(address_);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->address = address_;
  snapshot->status = connection.get_status(kDeadline);
  add_jobs(*snapshot, connection);
  snapshot->wanted = connection.list_wanted({}, kDeadline);
  add_records(*snapshot, connection);
  snapshot->read_at = clock_.wall_now();
  return snapshot;
}

void Snapshots::add_jobs(Snapshot& snapshot, const Connection& connection) {
  std::map<std::string, v1::Job> open;
  const v1::ListJobsReply reply = connection.list_jobs(false, kDeadline);
  for (const v1::Job& job : reply.jobs()) {
    open[job.id()] = job;
  }
  const bool is_fresh = last_ && clock_.steady_now() - jobs_at_ < kEndedJobsFresh;
  if (is_fresh && std::ranges::equal(open | std::views::keys, open_jobs_)) {
    snapshot.jobs = last_->jobs;
    for (v1::Job& job : snapshot.jobs) {
      if (const auto now = open.find(job.id()); now != open.end()) {
        job = now->second;
      }
    }
    return;
  }
  const v1::ListJobsReply all = connection.list_jobs(true, kDeadline);
  snapshot.jobs.assign(all.jobs().begin(), all.jobs().end());
  open_jobs_.assign(std::views::keys(open).begin(), std::views::keys(open).end());
  jobs_at_ = clock_.steady_now();
}

void Snapshots::add_records(Snapshot& snapshot, const Connection& connection) {
  const auto same = [](const v1::Generation& a, const v1::Generation& b) {
    return a.store_id() == b.store_id() && a.number() == b.number();
  };
  if (last_ && same(last_->status.generation(), snapshot.status.generation()) &&
      clock_.steady_now() - records_at_ < kRecordsFresh) {
    snapshot.records = last_->records;
    snapshot.records_missing = last_->records_missing;
    return;
  }
  v1::ExportTableRequest request;
  request.set_include_replayed(true);
  request.set_include_provisional(true);
  request.set_include_shipped(true);
  snapshot.records = std::make_shared<Table>();
  try {
    snapshot.records = std::make_shared<Table>(
        read_table(connection.export_table(request, kDeadline).json(), "the daemon's table"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::PermissionDenied) {
      throw;
    }
    snapshot.records_missing = error.what();
  }
  records_at_ = clock_.steady_now();
}

}  // namespace cubind::web
