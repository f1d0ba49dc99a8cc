// A PlanTemplate compiled against one symbol table: constraints and launch limits as checks that know which
// variables they read, so that enumeration can ask each as soon as its variables are bound, and the launch
// plan once all are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/expr/expression.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

/// What one launch is enqueued with, without its parameters.
struct LaunchShape {
  Dim3 grid;  // a zero: the launch is left out
  Dim3 block;
  std::uint64_t shared_bytes = 0;  // dynamic
  std::optional<Dim3> cluster = {};
  LaunchAttributes attributes = {};

  bool left_out() const { return grid.x == 0 || grid.y == 0 || grid.z == 0; }
};

/// Immutable after construction: every const method may be called from several threads at once.
///
/// Slots of the value array: dims, flags, tunables (each in the order of the constructor's problem and
/// configuration), then sizeof(T) for each type, the device constants and the callers' scalars. Errors of
/// evaluation (overflow, division by zero) are thrown as Error(InvalidArgument) whose where() is the JSON
/// pointer of the expression in the spec, without a file.
class PlanProgram {
 public:
  PlanProgram(PlanTemplate plan, const Problem& problem, const Configuration& configuration,
              const DeviceConstants& device);

  /// Sets dims and flags (or tunables) in `values`. Throws Error(InvalidArgument) if names, their order or
  /// the types are not those of the constructor.
  void set_problem(const Problem& problem, std::vector<std::int64_t>& values) const;
  void set_configuration(const Configuration& configuration, std::vector<std::int64_t>& values) const;
  /// Computes once what reads no slot that `varying` marks (by slot): for a program that is evaluated again
  /// and again while a few slots vary. The other slots of `values` hold from now on. Every check has to hold
  /// for `values`.
  void fix(std::span<const std::int64_t> values, const std::vector<bool>& varying);
  /// Every slot, with the values of types and device filled in.
  std::vector<std::int64_t> initial_values() const { return initial_values_; }

  /// The first slot of the tunables: tunable i is read from first_tunable() + i.
  std::size_t first_tunable() const { return first_tunable_; }
  std::size_t tunable_count() const { return tunable_count_; }

  /// Constraints first, in order, then launch limits, scalars and extents.
  std::size_t check_count() const { return checks_.size(); }
  std::span<const std::uint32_t> check_slots(std::size_t check) const { return checks_[check].slots; }
  bool holds(std::size_t check, std::span<const std::int64_t> values) const;
  /// Its JSON pointer in the spec, and what it demands: "/constraints/0" and the constraint's text.
  struct CheckName {
    std::string where, condition;
  };
  CheckName check_name(std::size_t check) const;
  /// Why it does not hold: the expressions with their values.
  std::string describe(std::size_t check, std::span<const std::int64_t> values) const;

  /// Only valid where every check holds.
  LaunchPlan plan(std::span<const std::int64_t> values) const;
  /// Like plan(), with the launches that have a zero in their grid, so that every buffer's extent is in it.
  LaunchPlan plan_of_all(std::span<const std::int64_t> values) const;
  /// The numbers in the plan, one launch of the template and one of its parameters at a time. Nothing is
  /// allocated.
  LaunchShape shape(std::size_t launch, std::span<const std::int64_t> values) const {
    return shape(launch, values, false);
  }
  /// A parameter of source TensorMap.
  TensorMap tensor_map(std::size_t launch, std::size_t index, std::span<const std::int64_t> values) const;
  /// A caller's scalar that strides of tensor maps read as caller.NAME. Its slot is 0 but for a launch that
  /// has a value for it.
  struct CallerScalar {
    std::string name;
    std::size_t slot = 0;
  };
  std::span<const CallerScalar> caller_scalars() const { return caller_scalars_; }
  /// Of such a tensor_map() the strides for other scalars.
  void set_strides(std::size_t launch, std::size_t index, std::span<const std::int64_t> values,
                   TensorMap& map) const;
  /// A buffer's extent in bytes, the value of what the plan computes, 0 for a caller's scalar.
  std::int64_t parameter_number(std::size_t launch, std::size_t index,
                                std::span<const std::int64_t> values) const;

  const PlanTemplate& plan_template() const { return template_; }

 private:
  using Values = std::span<const std::int64_t>;
  using Axes = std::array<std::int64_t, 3>;

  struct BoundTensorMap {
    std::array<std::vector<BoundExpression>, std::size(kTensorMapLists)> lists;
    std::string where;
  };
  struct BoundParameter {
    std::optional<BoundExpression> expression;  // extent or value; absent for a caller's scalar
    std::vector<BoundExpression> shape;         // empty: the spec gives none
    std::string where, shape_where;
    std::optional<BoundTensorMap> map = {};
  };
  struct BoundLaunch {
    std::vector<BoundExpression> grid, block, shared_bytes;  // one to three, one to three, one
    std::vector<BoundExpression> cluster;                    // one to three, or none
    bool shared_fits = false;                                // whatever the grid is: known since fix()
    std::vector<BoundParameter> parameters;
    std::string where;
  };
  struct Check {
    enum class Kind : std::uint8_t { Constraint, Shape, Shared, Parameter, TensorMap };
    Kind kind = Kind::Constraint;
    std::size_t launch = 0;
    std::size_t index = 0;  // of the constraint or parameter
    std::vector<std::uint32_t> slots;
  };

  void add_symbols(const Problem& problem, const Configuration& configuration, const DeviceConstants& device);
  void add_symbol(const std::string& name, std::int64_t value);
  void add_caller_scalars();
  BoundExpression bind(const std::string& text, const std::string& where) const;
  std::vector<BoundExpression> bind_axes(const std::vector<std::string>& texts,
                                         const std::string& where) const;
  BoundTensorMap bind(const TensorMapTemplate& map) const;
  BoundParameter bind(const ParameterTemplate& parameter) const;
  void bind_launch(std::size_t index);
  void fix(BoundExpression& expression, std::span<const std::int64_t> values,
           const std::vector<bool>& varying) const;
  void add_launch_checks(std::size_t launch);
  void add_check(Check::Kind kind, std::size_t launch, std::size_t index,
                 std::vector<std::span<const BoundExpression>> expressions);

  /// Each says whether the check holds and, if it does not and `why` is given, why.
  bool constraint_holds(std::size_t index, Values values, std::string* why) const;
  bool shape_holds(std::size_t launch, Values values, std::string* why) const;
  bool cluster_holds(const BoundLaunch& bound, const Axes& grid, Values values, std::string* why) const;
  bool shared_holds(std::size_t launch, Values values, std::string* why) const;
  bool parameter_holds(const Check& check, Values values, std::string* why) const;
  bool tensor_map_holds(const Check& check, Values values, std::string* why) const;
  std::int64_t map_number(const BoundTensorMap& map, std::size_t list, std::size_t index,
                          Values values) const;
  bool check_holds(const Check& check, Values values, std::string* why) const;
  std::string bindings(const Check& check, Values values) const;
  bool extent_holds(const BoundParameter& bound, const ParameterTemplate& from, Values values,
                    std::string* why) const;
  Parameter parameter(std::size_t launch, std::size_t index, Values values) const;
  LaunchShape shape(std::size_t launch, Values values, bool left_out_too) const;
  LaunchPlan make_plan(Values values, bool all) const;

  PlanTemplate template_;
  std::vector<TypeBinding> types_;
  SymbolTable symbols_;
  std::vector<std::int64_t> initial_values_;
  std::size_t first_flag_ = 0, first_tunable_ = 0, tunable_count_ = 0, first_caller_ = 0;
  std::vector<CallerScalar> caller_scalars_;
  std::int64_t shared_limit_ = 0, compute_capability_ = 0;
  std::vector<BoundExpression> constraints_;
  std::vector<BoundLaunch> launches_;
  std::vector<Check> checks_;
};

}  // namespace cubind
