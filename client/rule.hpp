// The problems that an answer covers, and their launches. Holds all that launching needs of a reply, without
// protobuf messages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "plan/plan_program.hpp"
#include "plan/problem.hpp"

namespace cubind {

/// The dim may have any value from lower to upper, inclusive.
struct DimInterval {
  std::string dim;
  std::int64_t lower = 0, upper = 0;
};

/// The values of the problem's dims, in its order.
std::vector<std::int64_t> dim_values(const Problem& problem);

/// The parts of a Rule, read from a reply or its JSON.
struct RuleParts {
  std::string kernel;
  Problem asked;
  Configuration configuration;
  std::vector<DimInterval> intervals;  // a dim without an interval must have the asked value
  std::vector<Problem> own_records;    // not answered by this rule
  PlanTemplate plan;
  DeviceConstants device;
  std::vector<std::string> conditions = {};  // true where no other record of the bucket is preferred
};

/// The values of a plan's expressions for one problem: its slots (plan/plan_program.hpp) in a fixed
/// array, without an allocation.
class RuleValues {
 public:
  static constexpr std::size_t kCapacity = 256;
  std::span<const std::int64_t> span() const { return {slots_, count_}; }

 private:
  friend class Rule;
  std::int64_t slots_[kCapacity];  // NOLINT: filled up to count_
  std::size_t count_ = 0;
};

/// Immutable, safe on many threads.
class Rule {
 public:
  /// Throws Error(InvalidArgument) if an expression does not parse or has an unknown name,
  /// Error(ResourceExhausted) for more than RuleValues::kCapacity names.
  explicit Rule(RuleParts parts);

  const std::string& kernel() const { return kernel_; }
  const Problem& asked() const { return asked_; }
  const Configuration& configuration() const { return configuration_; }
  const PlanProgram& program() const { return program_; }

  /// The launch plan for a canonical problem (names in the order of asked()). Absent if the rule does not
  /// cover the problem: another bucket, its own record, a violated constraint or launch limit.
  std::optional<LaunchPlan> plan_for(const Problem& problem) const;
  /// Why the asked problem has no plan; empty if it has one.
  std::string violation() const;

  /// Like plan_for(), for values of the asked problem's dims, in their order. If the rule covers them, fills
  /// `values` and returns true. Allocates nothing.
  bool evaluate(std::span<const std::int64_t> dims, RuleValues& values) const;

 private:
  struct Range {
    std::int64_t lower = 0, upper = 0;
  };

  bool covers(std::span<const std::int64_t> dims) const;
  bool checks_hold(std::span<const std::int64_t> values) const;

  std::string kernel_;
  Problem asked_;
  Configuration configuration_;
  std::vector<Range> ranges_;  // of the dims
  std::vector<std::int64_t> asked_dims_;
  std::vector<std::vector<std::int64_t>> own_records_;  // their dims, sorted
  PlanProgram program_;
  std::vector<std::int64_t> initial_;  // slots with the configuration filled in
  std::vector<std::size_t> varying_;   // checks that read a dim with an interval
  bool fixed_checks_hold_ = true;      // all others
};

}  // namespace cubind
