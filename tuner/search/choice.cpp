#include "tuner/search/choice.hpp"

#include <algorithm>
#include <tuple>

namespace cubind {
namespace {

// A difference that may be noise is no reason to leave what is in use, but a reason to take the faster of two
// that are not.
bool tied(const Contender& one, const Contender& leader, const RoundContext& context) {
  const auto ratio = round_ratio(*one.times, *leader.times, context);
  if (!ratio) {
    return false;
  }
  return ratio->ratio <= 1 + context.settings.tie_margin || (one.incumbent && ratio->interval.low <= 1);
}

// The smaller wins a tie.
auto tie_rank(const Contender& one) {
  return std::make_tuple(!one.incumbent, !one.is_default, one.registers, one.shared_bytes, one.canonical);
}

ChoiceRule rule_of(const Contender& winner, const Contender& next) {
  if (winner.incumbent) {
    return ChoiceRule::Incumbent;
  }
  if (winner.is_default) {
    return ChoiceRule::Default;
  }
  if (winner.registers != next.registers) {
    return ChoiceRule::Registers;
  }
  return winner.shared_bytes != next.shared_bytes ? ChoiceRule::SharedBytes : ChoiceRule::Canonical;
}

}  // namespace

std::string_view to_string(ChoiceRule rule) {
  switch (rule) {
    case ChoiceRule::Fastest:
      return "fastest";
    case ChoiceRule::Incumbent:
      return "incumbent";
    case ChoiceRule::Default:
      return "default";
    case ChoiceRule::Registers:
      return "fewer registers";
    case ChoiceRule::SharedBytes:
      return "less shared memory";
    case ChoiceRule::Canonical:
      return "earlier in the space";
  }
  return "unknown";
}

std::optional<Choice> choose(const std::vector<Contender>& contenders, const RoundContext& context) {
  std::vector<std::size_t> eligible;
  for (const bool wanted : {true, false}) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (contenders[i].running == wanted && !contenders[i].times->empty()) {
        eligible.push_back(i);
      }
    }
    if (!eligible.empty()) {
      break;
    }
  }
  if (eligible.empty()) {
    return std::nullopt;
  }
  std::vector<const RoundTimes*> times;
  for (const std::size_t i : eligible) {
    times.push_back(contenders[i].times);
  }
  const std::size_t leader = eligible[*fastest_in_rounds(times, context)];
  std::erase_if(eligible, [&](std::size_t i) {
    return i != leader && !tied(contenders[i], contenders[leader], context);
  });
  std::ranges::sort(eligible, {}, [&](std::size_t i) { return tie_rank(contenders[i]); });
  Choice choice{eligible.front(), leader, eligible.size(), ChoiceRule::Fastest};
  if (eligible.size() > 1) {
    choice.rule = rule_of(contenders[eligible[0]], contenders[eligible[1]]);
  }
  return choice;
}

std::optional<std::size_t> choose_winner(const std::vector<Contender>& contenders,
                                         const RoundContext& context) {
  const auto choice = choose(contenders, context);
  return choice ? std::optional(choice->winner) : std::nullopt;
}

}  // namespace cubind
