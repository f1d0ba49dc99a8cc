// Screening stops hopeless trials after one sample, or after all of its samples. Its result is not a final
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tuner/measure/measure_settings.hpp"

namespace cubind {

enum class ScreenVerdict : std::uint8_t {
  Measure,   // more samples are wanted
  Hopeless,  // slower than the best by more than the margin
  Survivor,  // fully screened and not hopeless
};

/// What to do with a trial next.
struct ScreenStep {
  ScreenVerdict verdict = ScreenVerdict::Measure;
  std::uint32_t samples = 0;  // Measure: how many
  bool operator==(const ScreenStep&) const = default;
};

/// A trial so far, and what it competes with.
struct ScreenQuestion {
  std::span<const double> samples_us;
  std::optional<double> best_us;  // of the trials fully screened before; absent: this is the first
  double tick_us = 0;
  bool must_compete = false;  // default and incumbent are always screened fully
};

/// The next step for a trial that has these samples.
ScreenStep screen_step(const ScreenQuestion& question, const MeasureSettings& settings);

/// A trial that was screened fully.
struct Screened {
  std::size_t candidate = 0;  // in search order, which breaks ties
  double value_us = 0;        // screen_value_us
  bool must_compete = false;
};

/// The finalists: all within the second margin of the best, at most MeasureSettings::max_finalists
/// (short_finalists where means are compared), fastest first. Trials that must compete are always among
/// them. Returns candidates.
std::vector<std::size_t> choose_finalists(std::span<const Screened> screened, double tick_us,
                                          const MeasureSettings& settings);

}  // namespace cubind
