#include "server/service/kept_wants.hpp"

#include <utility>

#include "server/store/store.hpp"

namespace cubind {

void KeptWants::count(Store& store, const RecordQuestion& wanted, const std::string& now) {
  if (!store.read_only_reason()) {
    store.write_behind([wanted, now](StoreWriter& writer) { writer.count_want(wanted, now); });
  } else {
    keep(wanted, now);
  }
}

void KeptWants::keep(const RecordQuestion& wanted, const std::string& now) {
  const std::lock_guard lock(mutex_);
  kept_.push_back({wanted, now});
  if (kept_.size() > kMaxWants) {
    kept_.pop_front();
  }
}

void KeptWants::store_kept(Store& store) {
  if (store.read_only_reason()) {
    return;
  }
  std::deque<Kept> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
  }
  if (!kept.empty()) {
    store.write_behind([kept = std::move(kept)](StoreWriter& writer) {
      for (const Kept& one : kept) {
        writer.count_want(one.wanted, one.at);
      }
    });
  }
}

}  // namespace cubind
