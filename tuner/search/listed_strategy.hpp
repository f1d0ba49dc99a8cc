// A list of configurations and nothing else.
#pragma once

#include "tuner/search/strategy.hpp"
#include "tuner/search/tried.hpp"

namespace cubind {

class ListedStrategy : public Strategy {
 public:
  /// `numbers`: valid configurations, each proposed once, in this order.
  explicit ListedStrategy(std::vector<std::uint64_t> numbers);

  std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) override;

 private:
  const std::vector<std::uint64_t> numbers_;
  Tried tried_;
};

}  // namespace cubind
