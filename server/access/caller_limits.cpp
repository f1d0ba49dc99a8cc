#include "server/access/caller_limits.hpp"

#include <algorithm>
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
      caller_(std::move(other.caller_)),
      what_(other.what_),
      amount_(std::exchange(other.amount_, 0)) {}

CallerLimits::Hold& CallerLimits::Hold::operator=(Hold&& other) noexcept {
  std::swap(limits_, other.limits_);
  std::swap(caller_, other.caller_);
  std::swap(what_, other.what_);
  std::swap(amount_, other.amount_);
  return *this;
}

CallerLimits::Hold::~Hold() {
  if (limits_ != nullptr) {
    limits_->remove(caller_, what_, amount_);
  }
}

void CallerLimits::Hold::add(std::uint64_t amount) {
  if (limits_ != nullptr) {
    limits_->add(caller_, what_, amount);
    amount_ += amount;
  }
}

CallerLimits::Hold CallerLimits::take(const std::string& caller, Held what, std::uint64_t amount) {
  if (caller.empty()) {
    return {};
  }
  Hold hold(*this, caller, what);
  hold.add(amount);
  return hold;
}

std::uint64_t CallerLimits::held(const std::string& caller, Held what) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(caller);
  return found == counts_.end() ? 0 : found->second.at(index_of(what));
}

void CallerLimits::add(const std::string& caller, Held what, std::uint64_t amount) {
  const CallerLimit& limit = kCallerLimits.at(index_of(what));
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(caller);
  const std::uint64_t held = found == counts_.end() ? 0 : found->second.at(index_of(what));
  if (amount > limit.most - held) {
    throw Error(ErrorCode::ResourceExhausted, "caller " + caller,
                "has " + std::to_string(held) + " " + std::string(limit.unit) + ", " +
                    std::to_string(amount) + " more would exceed the limit of " + std::to_string(limit.most) +
                    ": " + std::string(limit.remedy));
  }
  counts_[caller].at(index_of(what)) = held + amount;
}

void CallerLimits::remove(const std::string& caller, Held what, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(caller);
  if (found == counts_.end()) {
    return;
  }
  found->second.at(index_of(what)) -= amount;
  if (std::ranges::all_of(found->second, [](std::uint64_t count) { return count == 0; })) {
    counts_.erase(found);
  }
}

}  // namespace cubind
