// Why a problem's winner won: what its stored trials say, by the rules that the tuner itself applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/choice.hpp"
#include "tuner/search/tunable_effects.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/table/table.hpp"

namespace cubind::ctl {

/// Which trials of a table are explained.
struct ExplainedQuestion {
  std::string kernel;
  Problem problem;  // canonical
  std::string policy = to_string(Policy{});
  std::string numerics = "tolerance";
  std::string name_space;
  std::optional<Digest> device_class = {};  // absent: whichever has trials
};

/// The highest rates of a device at its clocks during a problem's trials. 0: not known.
struct PeakRates {
  double bytes_per_second = 0;
  double flops_per_second = 0;  // of the fastest dense instruction
};

/// A trial that was timed.
struct ExplainedTrial {
  const TableTrial* trial = nullptr;
  /// The winner's is that of its record, a finalist's what a record would say (record_time_us), and that of
  /// others is screening's.
  double time_us = 0;
  std::uint32_t samples = 0;
  bool screened = false;        // and was no finalist: `time_us` is the median of the screening's samples
  std::uint32_t registers = 0;  // the largest of its entries, as the two that follow
  std::uint32_t spilled_bytes = 0;
  bool tensor_cores = false;                                 // one of its entries uses them
  std::uint64_t shared_bytes = 0;                            // static and dynamic
  std::optional<double> occupancy;                           // the smallest of its launches
  std::optional<double> bytes_per_second, flops_per_second;  // of the spec's `work`
  /// Time that the work would take at the peak rates (tuner/measure/floor) over the time that it took; absent
  /// where a rate is not known.
  std::optional<double> roofline_share;
  double judged_against_us = 0;  // the best when it was first screened; 0: not known, or the first of all
  /// Was measured for this one, whose code is the same; null: it was measured itself.
  const TableTrial* measured_as = nullptr;
  bool is_default = false;
  bool is_winner = false;
};

/// A trial that took part in the final rounds.
struct ExplainedFinalist {
  std::size_t trial = 0;                // in Explanation::timed
  std::optional<RoundRatio> to_winner;  // its time over the winner's, by the rounds of both
};

/// What is known of a problem's tuning.
struct Explanation {
  std::string device;                   // label
  const TableRecord* record = nullptr;  // null: no winner is stored
  std::size_t trials = 0;
  WorkSizes work;
  PeakRates peak;
  std::vector<ExplainedTrial> timed;    // fastest first
  std::vector<TunableEffect> tunables;  // by all that were timed
  std::vector<const TableTrial*> failed;
  std::vector<ExplainedFinalist> finalists;  // fastest first; empty: the table has no samples
  std::optional<Choice> choice;              // among the finalists, by their samples
  /// The stored winner is not the one of these samples: it stayed as the previous winner, or the
  /// other failed the last check.
  bool chosen_otherwise = false;
  std::vector<std::string> remarks;
};

/// The times of a trial's rounds of the finals: one block per round.
RoundTimes rounds_of(const TableTrial& trial, const MeasureSettings& settings);

/// The table must outlive the explanation, and have one device class with trials for the question. Throws
/// Error(NotFound) where it has none, Error(InvalidArgument) where it has several.
Explanation explain(const Table& table, const KernelSpec& spec, const ExplainedQuestion& question,
                    const MeasureSettings& settings = {});

}  // namespace cubind::ctl
