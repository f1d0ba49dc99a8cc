#include "tuner/search/choice.hpp"

#include <algorithm>
#include <tuple>

#include "tuner/measure/margins.hpp"

namespace cubind {
namespace {

std::size_t fastest(const std::vector<Contender>& contenders, const std::vector<std::size_t>& eligible,
                    const RoundContext& context) {
  return *std::ranges::min_element(eligible, [&](std::size_t a, std::size_t b) {
    const double time_a = round_location_us(*contenders[a].times, context);
    const double time_b = round_location_us(*contenders[b].times, context);
    return std::tie(time_a, contenders[a].canonical) < std::tie(time_b, contenders[b].canonical);
  });
}

bool tied(const Contender& one, const Contender& leader, const RoundContext& context) {
  const auto ratio = round_ratio(*one.times, *leader.times, context, false);
  if (!ratio) {
    return false;
  }
  const double leader_us = round_location_us(*leader.times, context);
  const double margin = margin_us(leader_us, context.settings.tie_margin, context.tick_us, context.settings);
  return ratio->ratio <= 1 + margin / leader_us;
}

// The smaller wins a tie.
auto tie_rank(const Contender& one) {
  return std::make_tuple(!one.incumbent, !one.is_default, one.registers, one.shared_bytes, one.canonical);
}

}  // namespace

std::optional<std::size_t> choose_winner(const std::vector<Contender>& contenders,
                                         const RoundContext& context) {
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
  const std::size_t leader = fastest(contenders, eligible, context);
  std::erase_if(eligible, [&](std::size_t i) { return !tied(contenders[i], contenders[leader], context); });
  if (eligible.empty()) {
    return leader;
  }
  return *std::ranges::min_element(eligible, [&](std::size_t a, std::size_t b) {
    return tie_rank(contenders[a]) < tie_rank(contenders[b]);
  });
}

}  // namespace cubind
