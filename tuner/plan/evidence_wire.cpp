#include "tuner/plan/evidence_wire.hpp"

#include <string>

#include "base/refuse.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/library_comparison.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/plan/wire_fields.hpp"

namespace cubind {
namespace {

BlockConditions conditions_from_wire(const v1::ThrottleInfo& from) {
  BlockConditions conditions;
  conditions.sm_mhz = from.sm_mhz();
  conditions.memory_mhz = from.memory_mhz();
  conditions.temperature_c = from.temperature_c();
  conditions.power_mw = from.power_mw();
  conditions.throttle_reasons = from.throttle_reasons();
  conditions.throttled = from.throttled();
  conditions.contended = from.contended();
  return conditions;
}

}  // namespace

void to_wire(const EntryResources& from, v1::EntryResources& to) {
  to.set_entry_symbol(from.entry_symbol);
  to.set_registers(from.registers);
  to.set_static_shared_bytes(from.static_shared_bytes);
  to.set_local_bytes(from.local_bytes);
  to.set_spill_store_bytes(from.spill_store_bytes);
  to.set_spill_load_bytes(from.spill_load_bytes);
  to.set_tensor_cores(from.tensor_cores);
  to.set_launch_shared_bytes(from.launch_shared_bytes);
}

std::vector<EntryResources> resources_from_wire(
    const google::protobuf::RepeatedPtrField<v1::EntryResources>& from) {
  std::vector<EntryResources> resources;
  for (const v1::EntryResources& entry : from) {
    resources.push_back({entry.entry_symbol(), entry.registers(), entry.static_shared_bytes(),
                         entry.local_bytes(), entry.spill_store_bytes(), entry.spill_load_bytes(),
                         entry.tensor_cores(), entry.launch_shared_bytes()});
  }
  return resources;
}

void to_wire(const BlockConditions& from, v1::ThrottleInfo& to) {
  to.set_sm_mhz(from.sm_mhz);
  to.set_memory_mhz(from.memory_mhz);
  to.set_temperature_c(from.temperature_c);
  to.set_power_mw(from.power_mw);
  to.set_throttle_reasons(from.throttle_reasons);
  to.set_throttled(from.throttled);
  to.set_contended(from.contended);
}

void to_wire(const SampleBlock& from, v1::SampleBlock& to) {
  to.mutable_samples_us()->Assign(from.samples_us.begin(), from.samples_us.end());
  to_wire(from.conditions, *to.mutable_conditions());
  to.set_judged_against_us(from.judged_against_us);
}

SampleBlock block_from_wire(const v1::SampleBlock& from) {
  SampleBlock block;
  block.samples_us.assign(from.samples_us().begin(), from.samples_us().end());
  block.conditions = conditions_from_wire(from.conditions());
  block.judged_against_us = from.judged_against_us();
  return block;
}

void to_wire(const VerificationResult& from, v1::VerificationResult& to) {
  to_wire(from.problem, *to.mutable_problem());
  to.set_after_timing(from.after_timing);
  to.set_outcome(to_wire(from.outcome));
  to.set_worst_excess(from.worst_excess);
  to.set_same_bits(from.same_bits);
  to.set_worst_output(from.worst_output);
  to.set_worst_index(from.worst_index);
  to.set_mismatches(from.mismatches);
  to.set_detail(from.detail);
  to.set_reference(from.reference);
}

VerificationResult verification_from_wire(const v1::VerificationResult& from, std::string_view field) {
  VerificationResult result;
  result.problem = problem_from_wire(from.problem(), std::string(field) + ".problem");
  result.after_timing = from.after_timing();
  result.outcome = outcome_from_wire(from.outcome(), std::string(field) + ".outcome");
  result.worst_excess = from.worst_excess();
  result.same_bits = from.same_bits();
  result.worst_output = from.worst_output();
  result.worst_index = from.worst_index();
  result.mismatches = from.mismatches();
  result.detail = from.detail();
  result.reference = from.reference();
  return result;
}

void to_wire(const Timing& from, v1::Provenance& to) {
  to.set_median_us(from.median_us);
  to.set_median_low_us(from.low_us);
  to.set_median_high_us(from.high_us);
  to.set_samples(from.samples);
  to.set_sm_mhz(from.sm_mhz);
  to.set_power_limit_mw(from.power_limit_mw);
  to.set_throttled(from.throttled);
  to.set_contended(from.contended);
  to.set_gain_over_default(from.gain_over_default);
  to.set_timer(from.timer);
  to.set_tick_us(from.tick_us);
  to.set_measured_at(from.measured_at);
}

Timing timing_from_wire(const v1::Provenance& from) {
  Timing timing;
  timing.median_us = from.median_us();
  timing.low_us = from.median_low_us();
  timing.high_us = from.median_high_us();
  timing.samples = from.samples();
  timing.sm_mhz = from.sm_mhz();
  timing.power_limit_mw = from.power_limit_mw();
  timing.throttled = from.throttled();
  timing.contended = from.contended();
  timing.gain_over_default = from.gain_over_default();
  timing.timer = from.timer();
  timing.tick_us = from.tick_us();
  timing.measured_at = from.measured_at();
  return timing;
}

void to_wire(const LibraryComparison& from, v1::LibraryComparison& to) {
  to.set_library(from.library);
  to.set_gain(from.gain);
  to.set_gain_low(from.low);
  to.set_gain_high(from.high);
  to.set_samples(from.samples);
}

LibraryComparison comparison_from_wire(const v1::LibraryComparison& from, std::string_view field) {
  LibraryComparison comparison{from.library(), from.gain(), from.gain_low(), from.gain_high(),
                               from.samples()};
  if (const auto fault = fault_of(comparison)) {
    refuse(std::string(field) + "." + std::string(fault->member), fault->cause);
  }
  return comparison;
}

std::vector<LibraryComparison> comparisons_from_wire(const v1::Provenance& from) {
  std::vector<LibraryComparison> comparisons;
  for (int i = 0; i < from.over_library_size(); ++i) {
    comparisons.push_back(comparison_from_wire(from.over_library(i), element("over_library", i)));
  }
  return comparisons;
}

void to_wire(const VerificationSummary& from, v1::VerificationSummary& to) {
  to.set_verified(from.verified);
  to.set_reference(from.reference);
  to.set_worst_excess(from.worst_excess);
  for (const Problem& problem : from.problems) {
    to_wire(problem, *to.add_problems());
  }
  to.set_same_bits(from.same_bits);
  to.set_after_timing(from.after_timing);
}

VerificationSummary verification_from_wire(const v1::VerificationSummary& from, std::string_view field) {
  VerificationSummary summary;
  summary.verified = from.verified();
  summary.reference = from.reference();
  summary.worst_excess = from.worst_excess();
  summary.same_bits = from.same_bits();
  summary.after_timing = from.after_timing();
  for (int i = 0; i < from.problems_size(); ++i) {
    const std::string place = element_field(field, "problems", i);
    summary.problems.push_back(problem_from_wire(from.problems(i), place));
  }
  return summary;
}

}  // namespace cubind
