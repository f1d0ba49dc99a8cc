#include "server/lookup/pins.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/lookup/pinned_job.hpp"
#include "server/store/store.hpp"

namespace cubind {

namespace {

constexpr std::size_t kMostProcesses = 100'000;  // counted of a job

std::string text_of(std::uint64_t number) { return "generation " + std::to_string(number); }

void check_exists(const Generation& named, const Generation& current) {
  if (named.store_id != current.store_id) {
    throw Error(
        ErrorCode::FailedPrecondition, "locked",
        text_of(named.number) +
            " is one of another store: this one was restored or rebuilt since, or the daemon is another. "
            "Its numbers may mean other variants");
  }
  if (named.number > current.number) {
    throw Error(ErrorCode::NotFound, "locked",
                text_of(named.number) + " has not been yet, the newest is " + std::to_string(current.number));
  }
}

void check_pinned(const Generation& named, std::uint64_t pinned, const std::string& job) {
  if (named.number != pinned) {
    throw Error(ErrorCode::FailedPrecondition, "locked",
                "the job " + quoted(PinnedJob::of_key(job).name) + " has pinned " + text_of(pinned) +
                    ", not " + std::to_string(named.number) + ": a pin stays, take another name for the job");
  }
}

}  // namespace

std::shared_ptr<const IndexSnapshot> Pins::snapshot(const std::string& job,
                                                    const std::optional<Generation>& named,
                                                    const std::string& process) {
  Snapshot current = index_.snapshot();
  if (named) {
    check_exists(*named, newest(current->generation(), *named));
  }
  if (auto known = take(job, process)) {
    if (named) {
      check_pinned(*named, known->generation().number, job);
    }
    return known;
  }
  const std::uint64_t generation = pin(job, named ? named->number : current->generation().number);
  if (named) {
    check_pinned(*named, generation, job);
  }
  if (generation != current->generation().number) {
    current = IndexSnapshot::at(store_, generation);
  }
  return keep(job, std::move(current), process);
}

Generation Pins::newest(const Generation& known, const Generation& named) {
  const bool is_known = named.store_id == known.store_id && named.number <= known.number;
  if (is_known || store_.peers() == nullptr) {
    return known;
  }
  Generation stored;
  store_.read([&](StoreReader& reader) { stored = reader.generation(); });
  return stored;
}

std::uint64_t Pins::pin(const std::string& job, std::uint64_t current) {
  std::optional<std::uint64_t> pinned;
  store_.read([&](StoreReader& reader) { pinned = reader.pinned_generation(job); });
  if (pinned) {
    return *pinned;
  }
  try {
    store_.write([&](StoreWriter& writer) { pinned = writer.pin_generation(job, current); });
  } catch (const Error& error) {
    log_warning("the generation that job " + job + " pins is not stored: " + error.what());
  }
  return pinned.value_or(current);
}

Pins::Snapshot Pins::take(const std::string& job, const std::string& process) {
  const std::lock_guard lock(mutex_);
  const auto found = by_job_.find(job);
  if (found == by_job_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  count(entries_.front(), process);
  return entries_.front().snapshot;
}

Pins::Snapshot Pins::keep(const std::string& job, Snapshot snapshot, const std::string& process) {
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = by_job_.try_emplace(job, entries_.end());
  if (!added) {
    count(*entry->second, process);
    return entry->second->snapshot;
  }
  entries_.push_front({job, std::move(snapshot), {}});
  entry->second = entries_.begin();
  count(entries_.front(), process);
  if (entries_.size() > capacity_) {
    by_job_.erase(entries_.back().job);
    entries_.pop_back();
  }
  return entries_.front().snapshot;
}

void Pins::count(Entry& entry, const std::string& process) {
  if (!process.empty() && entry.processes.size() < kMostProcesses) {
    entry.processes.insert(std::hash<std::string>()(process));
  }
}

std::uint32_t Pins::processes(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? 0 : static_cast<std::uint32_t>(found->second->processes.size());
}

}  // namespace cubind
