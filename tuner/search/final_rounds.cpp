#include "tuner/search/final_rounds.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "base/random.hpp"
#include "tuner/measure/margins.hpp"

namespace cubind {
namespace {

Digest derive_seed(const Digest& seed, std::string_view purpose, std::uint32_t number) {
  std::string text(seed.view());
  text.append(purpose).append(std::to_string(number));
  return Digest::of(text);
}

std::vector<double> values(const RoundTimes& times) {
  std::vector<double> result;
  for (const auto& [round, time] : times) {
    result.push_back(time);
  }
  return result;
}

}  // namespace

std::optional<RoundRatio> round_ratio(const RoundTimes& a, const RoundTimes& b, const RoundContext& context) {
  std::vector<double> of_a, of_b;
  for (const auto& [round, time] : a) {
    const auto other = b.find(round);
    if (other == b.end()) {
      continue;
    }
    of_a.push_back(time);
    of_b.push_back(other->second);
  }
  if (of_a.empty()) {
    return std::nullopt;
  }
  const PairedRatio paired = paired_ratio(of_a, of_b, context.settings.separation_confidence);
  return RoundRatio{paired.ratio, paired.interval, of_a.size()};
}

RoundPlan round_plan(double fastest_us, const RoundContext& context) {
  const MeasureSettings& settings = context.settings;
  const bool many = is_short(fastest_us, context.tick_us, settings);
  return {many ? settings.short_samples : 1, settings.max_samples};
}

std::optional<std::size_t> fastest_in_rounds(std::span<const RoundTimes* const> finalists,
                                             const RoundContext& context) {
  std::optional<std::size_t> first;
  double first_us = 0;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const double time = finalists[i]->empty() ? 0 : round_location_us(*finalists[i], context);
    if (!finalists[i]->empty() && (!first || time < first_us)) {
      first = i;
      first_us = time;
    }
  }
  if (!first) {
    return std::nullopt;
  }
  auto best = first;
  double least = 1;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const auto ratio = round_ratio(*finalists[i], *finalists[*first], context);
    if (ratio && ratio->ratio < least) {
      best = i;
      least = ratio->ratio;
    }
  }
  return best;
}

double round_location_us(const RoundTimes& times, const RoundContext& context) {
  return location_us(values(times), context.tick_us, context.settings);
}

Location record_location(const RoundTimes& times, const RoundContext& context) {
  return is_short(median(values(times)), context.tick_us, context.settings) ? Location::Mean
                                                                            : Location::Median;
}

double record_time_us(const RoundTimes& times, const RoundContext& context) {
  return location(values(times), record_location(times, context));
}

FinalRounds::FinalRounds(std::size_t finalists, const RoundContext& context, std::uint32_t most_rounds)
    : context_(context),
      most_rounds_(most_rounds),
      state_(finalists),
      compares_at_(context.settings.min_samples) {}

std::optional<std::size_t> FinalRounds::leader() const {
  static const RoundTimes kNone;
  std::vector<const RoundTimes*> running;
  for (const State& one : state_) {
    running.push_back(one.running ? &one.times : &kNone);
  }
  return fastest_in_rounds(running, context_);
}

bool FinalRounds::done() const {
  if (std::ranges::none_of(state_, [](const State& one) { return one.running; })) {
    return true;
  }
  if (compared_at_ == 0 || compared_at_ < rounds_) {
    return false;
  }
  const auto first = leader();
  if (!first) {
    return false;
  }
  const bool has_all = rounds_ >= most_rounds_;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (state_[i].running && i != *first && !state_[i].resolved && !has_all) {
      return false;
    }
  }
  return true;
}

std::vector<std::size_t> FinalRounds::order(std::uint32_t round) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (state_[i].running) {
      result.push_back(i);
    }
  }
  Random random(derive_seed(context_.seed, "round", round));
  random.shuffle(std::span<std::size_t>(result));
  return result;
}

void FinalRounds::judge(State& one, const State& leader) {
  one.resolved = false;
  const auto ratio = round_ratio(one.times, leader.times, context_);
  ++intervals_;
  if (!ratio || ratio->rounds < context_.settings.min_samples) {
    return;
  }
  const double margin = context_.settings.tie_margin;
  const bool separated = ratio->interval.low > 1 || ratio->interval.high < 1;
  const bool tied = ratio->interval.low >= 1 - margin && ratio->interval.high <= 1 + margin;
  one.resolved = separated || tied;
  // A finalist that is certainly slower, but by less than the tie margin, may still win as the incumbent or
  // the default.
  if (separated && ratio->ratio > 1 + margin) {
    one.running = false;
  }
}

void FinalRounds::add_round(std::uint32_t round, const std::map<std::size_t, double>& times_us) {
  for (const auto& [finalist, time] : times_us) {
    state_[finalist].times[round] = time;
  }
  ++rounds_;
  if (rounds_ >= std::min(compares_at_, most_rounds_)) {
    compare();
  }
}

void FinalRounds::compare() {
  compared_at_ = rounds_;
  const auto grown = static_cast<std::uint32_t>(rounds_ * context_.settings.comparison_growth);
  compares_at_ = std::max(rounds_ + 1, grown);
  const auto first = leader();
  if (!first) {
    return;
  }
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (i != *first && state_[i].running) {
      judge(state_[i], state_[*first]);
    }
  }
}

// No finalist was compared with the one that leads now.
void FinalRounds::remove(std::size_t finalist) {
  if (leader() == finalist) {
    compared_at_ = 0;
    compares_at_ = std::max(rounds_ + 1, context_.settings.min_samples);
  }
  state_[finalist].running = false;
  state_[finalist].removed = true;
}

}  // namespace cubind
