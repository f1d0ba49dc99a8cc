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

std::optional<RoundRatio> round_ratio(const RoundTimes& a, const RoundTimes& b, const RoundContext& context,
                                      bool with_interval) {
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
  const bool means = compares_means(median(of_b), context.tick_us, context.settings);
  const Location kind = means ? Location::Mean : Location::Median;
  RoundRatio result{location(of_a, kind) / location(of_b, kind), {}, of_a.size()};
  if (with_interval) {
    const auto rounds = static_cast<std::uint32_t>(of_a.size());
    result.interval =
        bootstrap_ratio_interval(of_a, of_b,
                                 {context.settings.confidence, context.settings.bootstrap_resamples, kind,
                                  derive_seed(context.seed, "ratio", rounds)});
  }
  return result;
}

double round_location_us(const RoundTimes& times, const RoundContext& context) {
  return location_us(values(times), context.tick_us, context.settings);
}

FinalRounds::FinalRounds(std::size_t finalists, const RoundContext& context)
    : context_(context), state_(finalists), compares_at_(context.settings.min_samples) {}

std::optional<std::size_t> FinalRounds::leader() const {
  std::optional<std::size_t> best;
  double best_us = 0;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (!state_[i].running || state_[i].times.empty()) {
      continue;
    }
    const double time = round_location_us(state_[i].times, context_);
    if (best && time >= best_us) {
      continue;
    }
    best = i;
    best_us = time;
  }
  return best;
}

bool FinalRounds::done() const {
  const auto first = leader();
  if (!first) {
    return std::ranges::none_of(state_, [](const State& one) { return one.running; });
  }
  if (compared_at_ == 0 || compared_at_ < rounds_) {
    return false;
  }
  const bool has_all = rounds_ >= context_.settings.max_samples;
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
  const auto ratio = round_ratio(one.times, leader.times, context_, true);
  ++intervals_;
  if (!ratio || ratio->rounds < context_.settings.min_samples) {
    return;
  }
  const double leader_us = round_location_us(leader.times, context_);
  const double margin =
      margin_us(leader_us, context_.settings.tie_margin, context_.tick_us, context_.settings) / leader_us;
  const bool separated = ratio->interval.low > 1 || ratio->interval.high < 1;
  const bool tied = ratio->interval.low >= 1 - margin && ratio->interval.high <= 1 + margin;
  one.resolved = separated || tied;
  // A finalist that is slower for certain, but by less than the tie margin, may still win as the incumbent or
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
  if (rounds_ >= std::min(compares_at_, context_.settings.max_samples)) {
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

// Nobody was compared with the one that leads now.
void FinalRounds::remove(std::size_t finalist) {
  if (leader() == finalist) {
    compared_at_ = 0;
    compares_at_ = std::max(rounds_ + 1, context_.settings.min_samples);
  }
  state_[finalist].running = false;
  state_[finalist].removed = true;
}

}  // namespace cubind
