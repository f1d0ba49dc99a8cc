#include "server/service/saved_work.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/store.hpp"

namespace cubind {

double SavedWork::tuning_ms(const std::string& job) {
  if (job.empty() || store_.read_only_reason()) {  // the database may be away, and answers do not need it
    return 0;
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_job_.find(job); known != by_job_.end()) {
      return known->second;
    }
  }
  std::optional<JobRow> row;
  try {
    store_.read([&](StoreReader& reader) { row = reader.job(job); });
  } catch (const Error& error) {
    log_warning("the time of job " + job + " is not known: " + error.what());
    return 0;
  }
  if (row && !has_ended(row->state)) {
    return 0;
  }
  const std::lock_guard lock(mutex_);
  return by_job_.emplace(job, row ? row->shown().elapsed_ms() : 0).first->second;
}

Savings SavedWork::unkept() const {
  const AnswerCounts::Spared all = answers_.sums().spared;
  return {.since = stored_.since,
          .answers = all.answers - kept_.answers,
          .timed = all.timed - kept_.timed,
          .compile_ms = all.compile_ms - kept_.compile_ms,
          .tuning_ms = all.tuning_ms - kept_.tuning_ms};
}

Savings SavedWork::now() const {
  const std::lock_guard lock(mutex_);
  Savings sum = unkept();
  sum.answers += stored_.answers;
  sum.timed += stored_.timed;
  sum.compile_ms += stored_.compile_ms;
  sum.tuning_ms += stored_.tuning_ms;
  return sum;
}

void SavedWork::keep() {
  const std::lock_guard lock(mutex_);
  const Savings more = unkept();
  const bool is_news = more.answers > 0 || stored_.since.empty() || store_.peers() != nullptr;
  if (!is_news || store_.read_only_reason()) {
    return;
  }
  try {
    store_.write([&](StoreWriter& writer) { stored_ = writer.add_savings(more); });
  } catch (const Error& error) {
    log_warning(std::string("what answers have saved is not stored now: ") + error.what());
    return;
  }
  kept_.answers += more.answers;
  kept_.timed += more.timed;
  kept_.compile_ms += more.compile_ms;
  kept_.tuning_ms += more.tuning_ms;
}

}  // namespace cubind
