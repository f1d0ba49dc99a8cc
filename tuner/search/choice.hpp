// The choice of the winner among the finalists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/search/final_rounds.hpp"

namespace cubind {

struct Contender {
  const RoundTimes* times = nullptr;  // at least one round
  bool running = true;                // was not separated from the leader
  bool incumbent = false;
  bool is_default = false;
  std::uint32_t registers = 0;     // the largest of the entries
  std::uint64_t shared_bytes = 0;  // the largest of the launches, static and dynamic
  std::uint64_t canonical = 0;     // number in the space
};

/// The winner's index. The fastest by location_us leads; among those within the tie margin of the leader (of
/// the rounds that both took part in) the incumbent stays, else the default wins, else the one with fewer
/// registers, less shared memory, the earlier place in canonical order. Contenders that are no longer running
/// count only if none is running. Absent: there are no contenders.
std::optional<std::size_t> choose_winner(const std::vector<Contender>& contenders,
                                         const RoundContext& context);

}  // namespace cubind
