// Every configuration, likely winners first.
#pragma once

#include "tuner/search/strategy.hpp"
#include "tuner/search/tried.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

class ExhaustiveStrategy : public Strategy {
 public:
  /// Proposes `first` (default, winners of neighbouring problems: valid configurations) and then all others
  /// by their numbers. The space must outlive it.
  ExhaustiveStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first);

  std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) override;

 private:
  const ConfigurationSpace& space_;
  const std::vector<std::uint64_t> first_;
  Tried tried_;
  std::uint64_t position_ = 0;  // everything below it was tried
};

}  // namespace cubind
