#include "server/access/caller_limits.hpp"

#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

constexpr std::size_t index_of(Held what) { return static_cast<std::size_t>(what); }

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kCallerLimits.size(); ++i) {
    if (index_of(kCallerLimits.at(i).what) != i) {
      return false;
    }
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

CallerLimits::Hold::Hold(Hold&& other) noexcept
    : limits_(std::exchange(other.limits_, nullptr)),
      entry_(other.entry_),
      what_(other.what_),
      amount_(std::exchange(other.amount_, 0)) {}

CallerLimits::Hold& CallerLimits::Hold::operator=(Hold&& other) noexcept {
  std::swap(limits_, other.limits_);
  std::swap(entry_, other.entry_);
  std::swap(what_, other.what_);
  std::swap(amount_, other.amount_);
  return *this;
}

CallerLimits::Hold::~Hold() {
  if (limits_ != nullptr) {
    limits_->remove(*entry_, what_, amount_);
  }
}

void CallerLimits::Hold::add(std::uint64_t amount) {
  if (limits_ != nullptr) {
    limits_->add(*entry_, what_, amount);
    amount_ += amount;
  }
}

CallerLimits::Hold CallerLimits::take(const std::string& caller, Held what, std::uint64_t amount) {
  if (caller.empty()) {
    return {};
  }
  Hold hold(*this, entry_of(caller), what);
  hold.add(amount);
  return hold;
}

std::uint64_t CallerLimits::held(const std::string& caller, Held what) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(caller);
  return found == counts_.end() ? 0 : found->second.at(index_of(what));
}

CallerLimits::Entry& CallerLimits::entry_of(const std::string& caller) {
  const std::lock_guard lock(mutex_);
  return *counts_.try_emplace(caller).first;
}

void CallerLimits::add(Entry& entry, Held what, std::uint64_t amount) {
  const CallerLimit& limit = kCallerLimits.at(index_of(what));
  const std::lock_guard lock(mutex_);
  std::uint64_t& held = entry.second.at(index_of(what));
  if (amount > limit.most - held) {
    throw Error(ErrorCode::ResourceExhausted, "caller " + entry.first,
                "has " + std::to_string(held) + " " + std::string(limit.unit) + ", " +
                    std::to_string(amount) + " more would exceed the limit of " + std::to_string(limit.most) +
                    ": " + std::string(limit.remedy));
  }
  held += amount;
}

void CallerLimits::remove(Entry& entry, Held what, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  entry.second.at(index_of(what)) -= amount;
}

}  // namespace cubind
