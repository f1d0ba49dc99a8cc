#include "client/web/snapshot.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "client/connection.hpp"
#include "client/web/record_columns.hpp"

namespace cubind::web {
namespace {

constexpr std::chrono::seconds kFresh{1}, kEndedJobsFresh{15}, kRecordsFresh{60};
constexpr std::chrono::milliseconds kWaitForRecords{150};  // so that most stores are whole at first sight
constexpr std::chrono::milliseconds kDeadline{10'000};

Records read_records(const std::string& address) {
  std::vector<v1::ListedRecord> records = Connection(address).list_records({}, kDeadline);
  std::ranges::stable_sort(records, {},
                           [](const v1::ListedRecord& one) { return std::string_view(one.kernel()); });
  std::vector<std::string> texts(records.size());
  std::ranges::transform(records, texts.begin(), text_of);
  Records read{std::make_shared<std::vector<v1::ListedRecord>>(std::move(records)),
               std::make_shared<std::vector<std::string>>(std::move(texts)), ""};
  read.told = told_columns(records_table(read));
  return read;
}

bool is_same(const v1::Generation& one, const v1::Generation& other) {
  return one.store_id() == other.store_id() && one.number() == other.number();
}

}  // namespace

std::shared_ptr<const Snapshot> Snapshots::now() {
  const std::lock_guard lock(mutex_);
  if ((!last_ && !fault_) || clock_.steady_now() - last_at_ >= kFresh) {
    fault_ = nullptr;
    try {
      last_ = read();
    } catch (const Error&) {
      fault_ = std::current_exception();
    }
    last_at_ = clock_.steady_now();
  }
  if (fault_) {
    std::rethrow_exception(fault_);
  }
  return last_;
}

std::shared_ptr<const Snapshot> Snapshots::read() {
  if (const Digest caller = caller_digest(); std::exchange(caller_, caller) != caller) {
    last_.reset();
  }
  const Connection connection(address_);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->address = address_;
  snapshot->status = connection.get_status(kDeadline);
  add_jobs(*snapshot, connection);
  snapshot->wanted = connection.list_wanted({}, kDeadline);
  add_records(*snapshot);
  snapshot->read_at = clock_.wall_now();
  return snapshot;
}

void Snapshots::add_jobs(Snapshot& snapshot, const Connection& connection) {
  std::map<std::string, v1::Job> open;
  const v1::ListJobsReply reply = connection.list_jobs(false, kDeadline);
  for (const v1::Job& job : reply.jobs()) {
    open[job.id()] = job;
  }
  const bool is_fresh = last_ && clock_.steady_now() - jobs_at_ < kEndedJobsFresh &&
                        is_same(last_->status.generation(), snapshot.status.generation());
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

void Snapshots::add_records(Snapshot& snapshot) {
  const auto is_read = [&] {
    return reading_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  const v1::Generation& now = snapshot.status.generation();
  const Time::duration pause = 50 * records_took_;
  const Time::duration rest =
      is_same(records_of_, now) ? std::max<Time::duration>(kRecordsFresh, pause) : pause;
  snapshot.records =
      last_ ? last_->records
            : Records{std::make_shared<std::vector<v1::ListedRecord>>(),
                      std::make_shared<std::vector<std::string>>(), "The records are being read."};
  if (!reading_.valid() && (!last_ || clock_.steady_now() - records_at_ >= rest)) {
    records_of_ = now;
    records_at_ = clock_.steady_now();
    reading_caller_ = caller_;
    reading_ = std::async(std::launch::async, read_records, address_);
    reading_.wait_for(kWaitForRecords);
  }
  if (reading_.valid() && is_read()) {
    const bool is_callers = reading_caller_ == caller_;
    try {
      Records read = reading_.get();
      if (is_callers) {
        snapshot.records = std::move(read);
      }
    } catch (const Error& error) {
      if (is_callers) {
        snapshot.records.missing = std::string("The latest records cannot be read: ") + error.what();
      }
    }
    records_took_ = clock_.steady_now() - records_at_;
    records_at_ = is_callers ? clock_.steady_now() : Time{};
  }
}

}  // namespace cubind::web
