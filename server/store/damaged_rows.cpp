#include "server/store/damaged_rows.hpp"

#include "base/log.hpp"

namespace cubind::store {

void DamagedRows::leave_out(const Error& damage) {
  {
    const std::lock_guard lock(mutex_);
    if (!locations_.insert(damage.where()).second) {
      return;
    }
  }
  log_error(std::string(damage.what()) + "; the row is left out and stays in the file");
}

std::uint64_t DamagedRows::count() const {
  const std::lock_guard lock(mutex_);
  return locations_.size();
}

std::set<std::string> DamagedRows::locations() const {
  const std::lock_guard lock(mutex_);
  return locations_;
}

}  // namespace cubind::store
