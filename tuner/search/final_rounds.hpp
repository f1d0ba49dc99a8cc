// The finalists' rounds: every round measures each finalist that is still running once, in an order drawn
// from the job's seed. So drift of clock and temperature meets all of them alike. Comparisons are made within
// rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "tuner/measure/measure_settings.hpp"
#include "tuner/measure/statistics.hpp"

namespace cubind {

/// One finalist's times by round. A round that a finalist did not take part in is absent.
using RoundTimes = std::map<std::uint32_t, double>;

/// How many times as long one finalist takes as another, by the rounds that both took part in: paired_ratio
/// at MeasureSettings::separation_confidence.
struct RoundRatio {
  double ratio = 0;
  ConfidenceInterval interval;
  std::size_t rounds = 0;
};

struct RoundContext {
  Digest seed;  // of the job
  double tick_us = 0;
  MeasureSettings settings;
};

/// Absent: no round in common.
std::optional<RoundRatio> round_ratio(const RoundTimes& a, const RoundTimes& b, const RoundContext& context);

struct RoundPlan {
  std::uint32_t samples = 1;  // of a finalist that make its time in a round
  std::uint32_t most_rounds = 0;
};

/// Where the fastest takes `fastest_us`.
RoundPlan round_plan(double fastest_us, const RoundContext& context);

/// location_us of all rounds of a finalist.
double round_location_us(const RoundTimes& times, const RoundContext& context);

/// How a record's time sums up the rounds of a finalist: by their median, or by the mean of short ones
/// (is_short). At least one round.
Location record_location(const RoundTimes& times, const RoundContext& context);
double record_time_us(const RoundTimes& times, const RoundContext& context);

/// The fastest, by the ratios to the one with the lowest round_location_us. Finalists without a round do not
/// count; absent: none has one.
std::optional<std::size_t> fastest_in_rounds(std::span<const RoundTimes* const> finalists,
                                             const RoundContext& context);

/// Pure bookkeeping; used from one thread.
class FinalRounds {
 public:
  /// Finalists are numbered from 0.
  FinalRounds(std::size_t finalists, const RoundContext& context, std::uint32_t most_rounds);

  /// Whether all is known, as of the last comparison: each finalist still running is separated from the
  /// leader or within the tie margin of it, or has all its samples.
  bool done() const;
  /// The finalists of the next round, in the order to be measured; `round` is its number.
  std::vector<std::size_t> order(std::uint32_t round) const;
  /// Takes the times of one round, of everyone in order(round) that is still in. Where a comparison is due it
  /// decides who keeps running.
  void add_round(std::uint32_t round, const std::map<std::size_t, double>& times_us);
  /// Removes a finalist whose kernel failed.
  void remove(std::size_t finalist);

  /// Still in the running: not removed and not separated.
  bool running(std::size_t finalist) const { return state_[finalist].running; }
  bool removed(std::size_t finalist) const { return state_[finalist].removed; }
  const RoundTimes& times(std::size_t finalist) const { return state_[finalist].times; }
  /// The intervals that were drawn so far: what the decisions cost.
  std::size_t intervals() const { return intervals_; }

 private:
  struct State {
    RoundTimes times;
    bool running = true;
    bool removed = false;
    bool resolved = false;  // against the leader, as of the last comparison
  };
  std::optional<std::size_t> leader() const;
  void compare();
  void judge(State& one, const State& leader);

  RoundContext context_;
  std::uint32_t most_rounds_;
  std::vector<State> state_;
  std::uint32_t rounds_ = 0;       // added
  std::uint32_t compares_at_;      // so many rounds: the next comparison
  std::uint32_t compared_at_ = 0;  // the last one; 0: none yet
  std::size_t intervals_ = 0;
};

}  // namespace cubind
