#include "client/rule.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

// Names, types, flags and scenario: all but the values of the dims.
bool same_question(const Problem& a, const Problem& b) {
  return a.types == b.types && a.flags == b.flags && a.scenario == b.scenario &&
         std::ranges::equal(a.dims, b.dims, {}, &NamedValue::name, &NamedValue::name);
}

PlanTemplate with_conditions(PlanTemplate plan, const std::vector<std::string>& conditions) {
  plan.constraints.insert(plan.constraints.end(), conditions.begin(), conditions.end());
  return plan;
}

}  // namespace

std::vector<std::int64_t> dim_values(const Problem& problem) {
  std::vector<std::int64_t> values;
  std::ranges::transform(problem.dims, std::back_inserter(values), &NamedValue::value);
  return values;
}

Rule::Rule(RuleParts parts)
    : kernel_(std::move(parts.kernel)),
      asked_(std::move(parts.asked)),
      configuration_(std::move(parts.configuration)),
      asked_dims_(dim_values(asked_)),
      program_(with_conditions(std::move(parts.plan), parts.conditions), asked_, configuration_,
               parts.device),
      initial_(program_.initial_values()) {
  if (initial_.size() > RuleValues::kCapacity) {
    throw Error(ErrorCode::ResourceExhausted, "rule",
                std::to_string(initial_.size()) +
                    " dims, flags, types and tunables, a client takes at most " +
                    std::to_string(RuleValues::kCapacity));
  }
  program_.set_configuration(configuration_, initial_);
  for (const NamedValue& dim : asked_.dims) {
    const auto interval = std::ranges::find(parts.intervals, dim.name, &DimInterval::dim);
    const bool fixed = interval == parts.intervals.end();
    ranges_.push_back(fixed ? Range{dim.value, dim.value} : Range{interval->lower, interval->upper});
  }
  for (const Problem& own : parts.own_records) {
    if (same_question(own, asked_)) {
      own_records_.push_back(dim_values(own));
    }
  }
  std::ranges::sort(own_records_);
  const auto varies = [&](std::uint32_t slot) {
    return slot < ranges_.size() &&
           (ranges_[slot].lower != ranges_[slot].upper || ranges_[slot].lower != asked_dims_[slot]);
  };
  for (std::size_t check = 0; check < program_.check_count(); ++check) {
    if (std::ranges::any_of(program_.check_slots(check), varies)) {
      varying_.push_back(check);
    } else {
      fixed_checks_hold_ = fixed_checks_hold_ && program_.holds(check, initial_);
    }
  }
  if (checks_hold(initial_)) {
    std::vector<bool> varying(initial_.size());
    for (std::uint32_t slot = 0; slot < ranges_.size(); ++slot) {
      varying[slot] = varies(slot);
    }
    program_.fix(initial_, varying);
  }
}

bool Rule::covers(std::span<const std::int64_t> dims) const {
  const auto inside = [](std::int64_t value, const Range& range) {
    return range.lower <= value && value <= range.upper;
  };
  if (!std::ranges::equal(dims, ranges_, inside)) {
    return false;
  }
  const auto less = [](const auto& a, const auto& b) { return std::ranges::lexicographical_compare(a, b); };
  const auto own = std::lower_bound(own_records_.begin(), own_records_.end(), dims, less);
  return own == own_records_.end() || !std::ranges::equal(*own, dims);
}

// An expression that overflows here is the daemon's to explain: it knows the spec's file.
bool Rule::checks_hold(std::span<const std::int64_t> values) const {
  try {
    return fixed_checks_hold_ &&
           std::ranges::all_of(varying_, [&](std::size_t check) { return program_.holds(check, values); });
  } catch (const Error&) {
    return false;
  }
}

bool Rule::evaluate(std::span<const std::int64_t> dims, RuleValues& values) const {
  // The asked problem itself is covered, whatever own records the rule lists: this is its answer.
  if (!std::ranges::equal(dims, asked_dims_) && !covers(dims)) {
    return false;
  }
  std::ranges::copy(initial_, values.slots_);
  std::ranges::copy(dims, values.slots_);
  values.count_ = initial_.size();
  return checks_hold(values.span());
}

std::optional<LaunchPlan> Rule::plan_for(const Problem& problem) const {
  RuleValues values;
  if (!same_question(problem, asked_) || !evaluate(dim_values(problem), values)) {
    return std::nullopt;
  }
  return program_.plan(values.span());
}

std::string Rule::violation() const {
  std::vector<std::int64_t> values = initial_;
  for (std::size_t check = 0; check < program_.check_count(); ++check) {
    if (!program_.holds(check, values)) {
      return program_.describe(check, values);
    }
  }
  return {};
}

}  // namespace cubind
