#include "tuner/search/screening.hpp"

#include <algorithm>
#include <tuple>

#include "tuner/measure/margins.hpp"

namespace cubind {
namespace {

double last_margin(bool short_time, const MeasureSettings& settings) {
  return short_time ? settings.short_screen_margin : settings.screen_margin;
}

bool beyond(double value_us, double best_us, double fraction, double tick_us,
            const MeasureSettings& settings) {
  return value_us > best_us + margin_us(best_us, fraction, tick_us, settings);
}

}  // namespace

ScreenStep screen_step(const ScreenQuestion& question, const MeasureSettings& settings) {
  const auto count = static_cast<std::uint32_t>(question.samples_us.size());
  const bool best_is_short = question.best_us && is_short(*question.best_us, question.tick_us, settings);
  const std::uint32_t first = best_is_short ? settings.short_first_samples : settings.screen_first_samples;
  if (count < first) {
    return {ScreenVerdict::Measure, first - count};
  }
  const double least = *std::ranges::min_element(question.samples_us);
  const bool short_time = is_short(least, question.tick_us, settings);
  const std::uint32_t all = short_time ? settings.short_screen_samples : settings.screen_samples;
  const bool complete = count >= all;
  const double margin = complete ? last_margin(short_time, settings) : settings.screen_first_margin;
  if (!question.must_compete && question.best_us) {
    const double value = complete ? screen_value_us(question.samples_us, question.tick_us, settings) : least;
    if (beyond(value, *question.best_us, margin, question.tick_us, settings)) {
      return {ScreenVerdict::Hopeless, 0};
    }
  }
  if (complete) {
    return {ScreenVerdict::Survivor, 0};
  }
  return {ScreenVerdict::Measure, all - count};
}

std::vector<std::size_t> choose_finalists(std::span<const Screened> screened, double tick_us,
                                          const MeasureSettings& settings) {
  std::vector<Screened> ranked(screened.begin(), screened.end());
  std::ranges::sort(ranked, [](const Screened& a, const Screened& b) {
    return std::tie(a.value_us, a.candidate) < std::tie(b.value_us, b.candidate);
  });
  const auto must = static_cast<std::size_t>(
      std::ranges::count_if(ranked, [](const Screened& one) { return one.must_compete; }));
  const bool are_short = !ranked.empty() && is_short(ranked.front().value_us, tick_us, settings);
  const std::size_t most = are_short ? settings.short_finalists : settings.max_finalists;
  std::size_t others = most > must ? most - must : 0;
  std::vector<std::size_t> finalists;
  for (const Screened& one : ranked) {
    const bool near =
        !beyond(one.value_us, ranked.front().value_us, last_margin(are_short, settings), tick_us, settings);
    if (!one.must_compete && (!near || others == 0)) {
      continue;
    }
    if (!one.must_compete) {
      --others;
    }
    finalists.push_back(one.candidate);
  }
  return finalists;
}

}  // namespace cubind
