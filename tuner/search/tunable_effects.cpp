#include "tuner/search/tunable_effects.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace cubind {
namespace {

// Of all trials, of the logarithms of their times: what is below comes from rounding.
constexpr double kLeastSpread = 1e-20;

struct Group {
  double sum = 0;
  double count = 0;
  double mean() const { return sum / count; }
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

TunableEffect effect_of(const NamedValue& tunable, std::span<const TimedConfiguration> timed,
                        const std::vector<double>& logarithms) {
  std::map<std::int64_t, Group> groups;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    Group& group = groups[timed[i].configuration->value(tunable.name).value_or(tunable.value)];
    group.sum += logarithms[i];
    group.count += 1;
  }
  const double mean = mean_of(logarithms);
  double between = 0, total = 0;
  for (const auto& [value, group] : groups) {
    between += group.count * (group.mean() - mean) * (group.mean() - mean);
  }
  for (const double logarithm : logarithms) {
    total += (logarithm - mean) * (logarithm - mean);
  }
  TunableEffect effect{tunable.name};
  effect.values = groups.size();
  const auto by_mean = [](const auto& a, const auto& b) { return a.second.mean() < b.second.mean(); };
  const auto [best, worst] = std::ranges::minmax_element(groups, by_mean);
  effect.best_value = best->first;
  effect.worst_value = worst->first;
  effect.worst_over_best = std::exp(worst->second.mean() - best->second.mean());
  const double left = static_cast<double>(timed.size()) - static_cast<double>(groups.size());
  if (total > kLeastSpread && left > 0) {
    const double by_chance = (total - between) / left * static_cast<double>(groups.size() - 1);
    effect.explained = std::clamp((between - by_chance) / total, 0.0, 1.0);
  }
  return effect;
}

}  // namespace

std::vector<TunableEffect> tunable_effects(std::span<const TimedConfiguration> timed) {
  std::vector<TunableEffect> effects;
  if (timed.empty()) {
    return effects;
  }
  std::vector<double> logarithms;
  for (const TimedConfiguration& one : timed) {
    logarithms.push_back(std::log(one.time_us));
  }
  for (const NamedValue& tunable : timed.front().configuration->values) {
    TunableEffect effect = effect_of(tunable, timed, logarithms);
    if (effect.values > 1) {
      effects.push_back(std::move(effect));
    }
  }
  std::ranges::stable_sort(effects, std::ranges::greater{}, &TunableEffect::explained);
  return effects;
}

}  // namespace cubind
