// Facts in few words.
#pragma once

#include <string>
#include <vector>

#include "plan/answer_wire.hpp"
#include "plan/facts/facts.hpp"
#include "plan/wire.hpp"

namespace cubind::test {

inline SampleBlock block_of(const std::vector<double>& samples_us, double judged_against_us = 0,
                            std::uint32_t sm_mhz = 1980) {
  SampleBlock block;
  block.mutable_samples_us()->Assign(samples_us.begin(), samples_us.end());
  block.mutable_conditions()->set_sm_mhz(sm_mhz);
  if (judged_against_us > 0) {
    block.set_judged_against_us(judged_against_us);
  }
  return block;
}

inline VerificationResult comparison_of(const Problem& problem, double worst_excess = 0,
                                        v1::Outcome outcome = v1::CORRECT) {
  VerificationResult result;
  to_wire(problem, *result.mutable_problem());
  result.set_outcome(outcome);
  result.set_worst_excess(worst_excess);
  result.set_same_bits(true);
  return result;
}

inline EntryResources resources_of(const std::string& symbol, std::uint32_t registers,
                                   std::uint32_t static_shared_bytes = 0) {
  EntryResources entry;
  entry.set_entry_symbol(symbol);
  entry.set_registers(registers);
  entry.set_static_shared_bytes(static_shared_bytes);
  return entry;
}

inline LibraryComparison gain_over(const std::string& library, double gain, double low, double high,
                                   std::uint32_t samples) {
  LibraryComparison comparison;
  comparison.set_library(library);
  comparison.set_gain(gain);
  comparison.set_gain_low(low);
  comparison.set_gain_high(high);
  comparison.set_samples(samples);
  return comparison;
}

inline v1::StageTime stage_time(const std::string& stage, double ms) {
  v1::StageTime time;
  time.set_stage(stage);
  time.set_ms(ms);
  return time;
}

inline v1::SearchSummary search_of(const Digest& space, std::string_view strategy, std::uint64_t trials,
                                   double seconds, bool complete) {
  v1::SearchSummary search;
  search.set_space(bytes_of(space));
  search.set_strategy(std::string(strategy));
  search.set_trials(trials);
  search.set_seconds(seconds);
  search.set_complete(complete);
  return search;
}

template <typename Problems>
void set_problems(const Problems& problems, VerificationSummary& summary) {
  summary.clear_problems();
  for (const Problem& problem : problems) {
    to_wire(problem, *summary.add_problems());
  }
}

/// Of a winner; the median's interval in microseconds.
inline Timing timing_of(double median_us, double low_us, double high_us, std::uint32_t samples,
                        const std::string& measured_at) {
  Timing timing;
  timing.set_median_us(median_us);
  timing.set_low_us(low_us);
  timing.set_high_us(high_us);
  timing.set_samples(samples);
  timing.set_timer("cupti");
  timing.set_tick_us(0.032);
  timing.set_measured_at(measured_at);
  return timing;
}

/// A winner's, whose outputs were compared before and after it was timed.
template <typename Problems>
VerificationSummary verified(const Digest& verification, const std::string& reference,
                             const Problems& problems) {
  VerificationSummary summary;
  summary.set_verified(true);
  summary.set_digest(bytes_of(verification));
  summary.set_reference(reference);
  summary.set_worst_excess(0.25);
  summary.set_same_bits(true);
  summary.set_after_timing(true);
  set_problems(problems, summary);
  return summary;
}

}  // namespace cubind::test
