// The choice of the winner among the finalists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tuner/search/final_rounds.hpp"

namespace cubind {

/// The facts about a finalist that the choice uses.
struct Contender {
  const RoundTimes* times = nullptr;  // at least one round
  bool running = true;                // not yet separated from the leader
  bool incumbent = false;
  bool is_default = false;
  std::uint32_t registers = 0;     // the largest of the entries
  std::uint64_t shared_bytes = 0;  // the largest of the launches, static and dynamic
  std::uint64_t canonical = 0;     // number in the space
};

/// Why the winner won.
enum class ChoiceRule : std::uint8_t {
  Fastest,    // no other tied with it
  Incumbent,  // of those that tied, as the others below
  Default,
  Registers,
  SharedBytes,
  Canonical,
};

/// "fewer registers".
std::string_view to_string(ChoiceRule rule);

/// The winner, and what decided.
struct Choice {
  std::size_t winner = 0;
  std::size_t leader = 0;  // the fastest
  std::size_t tied = 0;    // how many tied with the leader, itself included
  ChoiceRule rule = ChoiceRule::Fastest;
};

/// The leader is fastest_in_rounds. Those tie with it whose ratio to it is within the tie
/// margin; incumbent and default also where they are not separated from it. Of these the incumbent stays,
/// else the default wins, else the one with fewer registers, less shared memory, the earlier place in
/// canonical order. Contenders that are no longer running count only if none is running. Absent: there are no
/// contenders.
std::optional<Choice> choose(const std::vector<Contender>& contenders, const RoundContext& context);

/// The index of choose()'s winner.
std::optional<std::size_t> choose_winner(const std::vector<Contender>& contenders,
                                         const RoundContext& context);

}  // namespace cubind
