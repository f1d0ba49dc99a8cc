// Numbers distinct items from 0 in the order of their first appearance. The items stay with the caller, who
// hashes and compares them.
#pragma once

#include <cstdint>
#include <vector>

namespace cubind {

class NumberTable {
 public:
  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }

  /// The number of the item with this hash that `is(number)` accepts, else the next number.
  template <typename Is>
  std::uint32_t number(std::uint64_t hash, const Is& is) {
    if (2 * (hashes_.size() + 1) > slots_.size()) {
      grow();
    }
    std::size_t slot = mixed(hash) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (hashes_[slots_[slot]] == hash && is(slots_[slot])) {
        return slots_[slot];
      }
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = size();
    hashes_.push_back(hash);
    return slots_[slot];
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  static std::uint64_t mixed(std::uint64_t hash) {
    hash *= 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 32);
  }

  void grow() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), kFree);
    for (std::uint32_t number = 0; number < hashes_.size(); ++number) {
      std::size_t slot = mixed(hashes_[number]) & (slots_.size() - 1);
      while (slots_[slot] != kFree) {
        slot = (slot + 1) & (slots_.size() - 1);
      }
      slots_[slot] = number;
    }
  }

  std::vector<std::uint64_t> hashes_;  // by number
  std::vector<std::uint32_t> slots_;   // a power of two of them, at most half in use
};

}  // namespace cubind
