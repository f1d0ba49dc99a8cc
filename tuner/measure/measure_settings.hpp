// All constants of measuring. Changing one changes the meaning of a stored screening, so all are here.
// Samples of one unchanged variant scatter by 1 to 2 % on an H200: the smallest of three is within 5 % of the
// best's, and the 95 % interval of a median of 60 was up to 0.8 % wide to one side.
#pragma once

#include <chrono>
#include <cstdint>

namespace cubind {

struct MeasureSettings {
  /// Screening: one sample after the warm-up, stop if beyond the first margin; then up to `screen_samples`,
  /// stop if the smallest is beyond the second. Both against the best trial screened so far. Where the best
  /// is short, the first look takes the least of `short_first_samples`, the median of
  /// `short_screen_samples` is compared, and the second margin is `short_screen_margin`: a sample scatters by
  /// 5 %, now and then one takes several times as long, and the lowest of many medians is a lucky one.
  std::uint32_t screen_first_samples = 1;
  std::uint32_t short_first_samples = 3;
  std::uint32_t screen_samples = 3;
  std::uint32_t short_screen_samples = 18;
  double screen_first_margin = 0.10;
  double screen_margin = 0.05;
  double short_screen_margin = 0.08;

  /// Finalists: interleaved rounds with one sample of each finalist. They are compared after `min_samples`
  /// rounds, after `max_samples`, and in between whenever the rounds have grown by `comparison_growth`: a
  /// comparison after each round would cost more than the rounds, and one of so many would succeed by chance.
  std::uint32_t max_finalists = 16;
  std::uint32_t min_samples = 10;
  std::uint32_t max_samples = 120;
  double comparison_growth = 1.25;
  double tie_margin = 0.001;
  /// Short times, below `mean_below_ticks`: screening by few samples of few ticks ranks them badly, so
  /// more go on, a round takes the mean of several samples of each, and there are more rounds.
  std::uint32_t short_finalists = 48;
  std::uint32_t short_samples = 12;
  /// Finalists are separated when the interval of their ratio at this confidence excludes 1. They are
  /// compared several times: at 0.95 each, one of ten equally fast ones would eventually be called slower
  /// (`bench/noise`).
  double separation_confidence = 0.99;

  /// Intervals.
  double confidence = 0.95;
  std::uint32_t bootstrap_resamples = 1000;

  /// Timers tick: no margin of screening is smaller than `margin_ticks`. Below `mean_below_ticks` a tick is
  /// more than a quarter of a percent and a median a whole tick, so the finals compare means. Kernels start
  /// anywhere between two ticks, so that a mean has no ticks.
  double margin_ticks = 2;
  double mean_below_ticks = 400;

  /// The clock is steady when `steady_readings` readings lie within `steady_band_mhz`, or after
  /// `steady_limit`.
  std::uint32_t steady_readings = 5;
  std::uint32_t steady_band_mhz = 15;
  std::chrono::milliseconds steady_limit{1000};

  /// Blocks with thermal or hardware slowdown are measured again, at most this often in a row; then kept and
  /// marked.
  std::uint32_t max_dropped_blocks = 3;

  /// A sample may lie this far below the floor before it is refused: the clock is a reading, not a constant.
  double floor_margin = 0.10;

  bool operator==(const MeasureSettings&) const = default;
};

}  // namespace cubind
