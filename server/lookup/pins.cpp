#include "server/lookup/pins.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/store.hpp"

namespace cubind {

std::shared_ptr<const IndexSnapshot> Pins::snapshot(const std::string& job) {
  if (auto known = take(job)) {
    return known;
  }
  Snapshot current = index_.snapshot();
  const std::uint64_t generation = pin(job, current->generation().number);
  if (generation != current->generation().number) {
    current = IndexSnapshot::at(store_, generation);
  }
  return keep(job, std::move(current));
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

Pins::Snapshot Pins::take(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(job);
  if (found == places_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().second;
}

Pins::Snapshot Pins::keep(const std::string& job, Snapshot snapshot) {
  const std::lock_guard lock(mutex_);
  const auto [place, added] = places_.try_emplace(job, entries_.end());
  if (!added) {
    return place->second->second;
  }
  entries_.emplace_front(job, std::move(snapshot));
  place->second = entries_.begin();
  if (entries_.size() > capacity_) {
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entries_.front().second;
}

}  // namespace cubind
