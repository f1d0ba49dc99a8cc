#include "plan/plan_program.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/evaluation.hpp"

namespace cubind {
namespace {

Dim3 dim3(const std::array<std::int64_t, 3>& axes) {
  return {static_cast<std::uint32_t>(axes[0]), static_cast<std::uint32_t>(axes[1]),
          static_cast<std::uint32_t>(axes[2])};
}

void copy_values(const std::vector<NamedValue>& from, const SymbolTable& symbols, std::size_t first,
                 std::size_t count, std::string_view what, std::vector<std::int64_t>& values) {
  if (from.size() != count) {
    refuse(std::string(what),
           std::to_string(from.size()) + " are given and " + std::to_string(count) + " expected");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i].name != symbols.name(first + i)) {
      refuse(std::string(what),
             quoted(from[i].name) + " stands where " + quoted(symbols.name(first + i)) + " belongs");
    }
    values[first + i] = from[i].value;
  }
}

}  // namespace

PlanProgram::PlanProgram(PlanTemplate plan, const Problem& problem, const Configuration& configuration,
                         const DeviceConstants& device)
    : template_(std::move(plan)),
      types_(problem.types),
      shared_limit_(device.shared_optin),
      compute_capability_(device.cc) {
  add_symbols(problem, configuration, device);
  for (std::size_t i = 0; i < template_.constraints.size(); ++i) {
    constraints_.push_back(bind(template_.constraints[i], "/constraints/" + std::to_string(i)));
    add_check(Check::Kind::Constraint, 0, i, {std::span(&constraints_.back(), 1)});
  }
  for (std::size_t i = 0; i < template_.launches.size(); ++i) {
    bind_launch(i);
  }
  for (std::size_t i = 0; i < template_.launches.size(); ++i) {
    add_launch_checks(i);
  }
}

void PlanProgram::add_symbols(const Problem& problem, const Configuration& configuration,
                              const DeviceConstants& device) {
  for (const NamedValue& dim : problem.dims) {
    add_symbol(dim.name, dim.value);
  }
  first_flag_ = symbols_.size();
  for (const NamedValue& flag : problem.flags) {
    add_symbol(flag.name, flag.value);
  }
  first_tunable_ = symbols_.size();
  for (const NamedValue& value : configuration.values) {
    add_symbol(value.name, value.value);
  }
  tunable_count_ = symbols_.size() - first_tunable_;
  for (const TypeBinding& type : problem.types) {
    add_symbol(sizeof_variable(type.name), static_cast<std::int64_t>(size_of(type.type)));
  }
  for (const auto& [name, value] : kDeviceConstants) {
    add_symbol(name, device.*value);
  }
  add_caller_scalars();
}

void PlanProgram::add_caller_scalars() {
  first_caller_ = symbols_.size();
  std::string strides;
  std::vector<std::string> names;
  for (const LaunchTemplate& launch : template_.launches) {
    for (const ParameterTemplate& parameter : launch.parameters) {
      strides += join(parameter.tensor_map.strides, " ") + " ";
      if (parameter.source == ParameterSource::Caller) {
        names.push_back(parameter.name);
      }
    }
  }
  for (const std::string& name : names) {
    const std::string symbol = caller_variable(name);
    if (strides.find(symbol) != std::string::npos && !symbols_.find(symbol)) {
      caller_scalars_.push_back({name, symbols_.size()});
      add_symbol(symbol, 0);
    }
  }
}

void PlanProgram::add_symbol(const std::string& name, std::int64_t value) {
  if (symbols_.find(name)) {
    refuse("plan", quoted(name) + " names two of dims, flags, types and tunables");
  }
  symbols_.add(name);
  initial_values_.push_back(value);
}

BoundExpression PlanProgram::bind(const std::string& text, const std::string& where) const {
  try {
    return Expression::parse(text).bind(symbols_);
  } catch (const ExpressionError& error) {
    refuse(where, error.what());
  }
}

std::vector<BoundExpression> PlanProgram::bind_axes(const std::vector<std::string>& texts,
                                                    const std::string& where) const {
  if (texts.empty() || texts.size() > 3) {
    refuse(where, "one to three expressions are needed");
  }
  std::vector<BoundExpression> bound;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    bound.push_back(bind(texts[i], where + "/" + std::to_string(i)));
  }
  return bound;
}

PlanProgram::BoundTensorMap PlanProgram::bind(const TensorMapTemplate& map) const {
  BoundTensorMap bound{{}, "/arguments/" + map.argument};
  if (const auto fault = tensor_map_fault(map)) {
    refuse(bound.where + "/" + fault->key, fault->cause);
  }
  for (std::size_t list = 0; list < bound.lists.size(); ++list) {
    const std::vector<std::string>& texts = map.*kTensorMapLists[list].second;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      bound.lists[list].push_back(bind(texts[i], bound.where + "/" + tensor_map_key(list, i)));
    }
  }
  return bound;
}

PlanProgram::BoundParameter PlanProgram::bind(const ParameterTemplate& parameter) const {
  const bool buffer = is_buffer(parameter.source);
  BoundParameter to;
  to.where = "/arguments/" + parameter.name + (buffer ? "/extent" : "/expr");
  if (parameter.source != ParameterSource::Caller) {
    to.expression = bind(buffer ? parameter.extent : parameter.value, to.where);
  }
  to.shape_where = "/arguments/" + parameter.name + "/shape";
  for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
    to.shape.push_back(bind(parameter.shape[i], to.shape_where + "/" + std::to_string(i)));
  }
  if (parameter.source == ParameterSource::TensorMap) {
    to.map = bind(parameter.tensor_map);
  }
  return to;
}

void PlanProgram::bind_launch(std::size_t index) {
  const LaunchTemplate& from = template_.launches[index];
  BoundLaunch bound;
  bound.where = template_.where + "/launches/" + std::to_string(index);
  bound.grid = bind_axes(from.grid, bound.where + "/grid");
  bound.block = bind_axes(from.block, bound.where + "/block");
  if (!from.cluster.empty()) {
    bound.cluster = bind_axes(from.cluster, bound.where + "/cluster");
  }
  bound.shared_bytes.push_back(bind(from.shared_bytes, bound.where + "/shared_bytes"));
  for (const ParameterTemplate& parameter : from.parameters) {
    bound.parameters.push_back(bind(parameter));
  }
  launches_.push_back(std::move(bound));
}

void PlanProgram::add_launch_checks(std::size_t launch) {
  const BoundLaunch& bound = launches_[launch];
  add_check(Check::Kind::Shape, launch, 0, {bound.grid, bound.block, bound.cluster});
  add_check(Check::Kind::Shared, launch, 0, {bound.grid, bound.shared_bytes});
  for (std::size_t i = 0; i < bound.parameters.size(); ++i) {
    const auto& [expression, shape, where, shape_where, map] = bound.parameters[i];
    if (expression) {
      add_check(Check::Kind::Parameter, launch, i, {std::span(&*expression, 1), shape});
    }
    if (map) {
      std::vector<std::span<const BoundExpression>> all(map->lists.begin(), map->lists.end());
      all.insert(all.end(), {bound.grid, std::span(&*expression, 1)});
      add_check(Check::Kind::TensorMap, launch, i, std::move(all));
    }
  }
}

void PlanProgram::add_check(Check::Kind kind, std::size_t launch, std::size_t index,
                            std::vector<std::span<const BoundExpression>> expressions) {
  Check check{kind, launch, index, {}};
  for (const auto& group : expressions) {
    for (const BoundExpression& expression : group) {
      check.slots.insert(check.slots.end(), expression.slots().begin(), expression.slots().end());
    }
  }
  std::ranges::sort(check.slots);
  const auto doubled = std::ranges::unique(check.slots);
  check.slots.erase(doubled.begin(), doubled.end());
  checks_.push_back(std::move(check));
}

void PlanProgram::set_problem(const Problem& problem, std::vector<std::int64_t>& values) const {
  if (problem.types != types_) {
    refuse("problem.types", "the plan was made for other types");
  }
  copy_values(problem.dims, symbols_, 0, first_flag_, "problem.dims", values);
  copy_values(problem.flags, symbols_, first_flag_, first_tunable_ - first_flag_, "problem.flags", values);
}

void PlanProgram::set_configuration(const Configuration& configuration,
                                    std::vector<std::int64_t>& values) const {
  copy_values(configuration.values, symbols_, first_tunable_, tunable_count_, "configuration", values);
}

void PlanProgram::fix(Values values, const std::vector<bool>& varying) {
  const auto fix_all = [&](std::vector<BoundExpression>& expressions) {
    for (BoundExpression& expression : expressions) {
      fix(expression, values, varying);
    }
  };
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    BoundLaunch& bound = launches_[i];
    for (auto* axes : {&bound.grid, &bound.block, &bound.shared_bytes, &bound.cluster}) {
      fix_all(*axes);
    }
    for (BoundParameter& parameter : bound.parameters) {
      if (parameter.expression) {
        fix(*parameter.expression, values, varying);
      }
      if (parameter.map) {
        std::ranges::for_each(parameter.map->lists, fix_all);
      }
    }
    bound.shared_fits = bound.shared_bytes[0].slots().empty() &&
                        !has_zero(evaluate_axes(bound.grid, bound.where, "/grid", values)) &&
                        shared_holds(i, values, nullptr);
  }
}

// What a launch that is left out does not need may have no value.
void PlanProgram::fix(BoundExpression& expression, Values values, const std::vector<bool>& varying) const {
  if (std::ranges::any_of(expression.slots(),
                          [&](std::uint32_t slot) { return slot >= first_caller_ || varying[slot]; })) {
    return;
  }
  try {
    expression = bind(std::to_string(expression.evaluate(values)), "");
  } catch (const ExpressionError&) {
    // It stays as it is, and fails when it is needed.
  }
}

std::int64_t PlanProgram::parameter_number(std::size_t launch, std::size_t index, Values values) const {
  const BoundParameter& bound = launches_[launch].parameters[index];
  if (!bound.expression) {
    return 0;
  }
  const ParameterTemplate& from = template_.launches[launch].parameters[index];
  const std::int64_t value = evaluate(*bound.expression, ExpressionLocation{bound.where}, values);
  return is_buffer(from.source) ? checked_bytes(value, from.type, bound.where) : value;
}

std::int64_t PlanProgram::map_number(const BoundTensorMap& map, std::size_t list, std::size_t index,
                                     Values values) const {
  try {
    return map.lists[list][index].evaluate(values);
  } catch (const ExpressionError& error) {
    refuse(map.where + "/" + tensor_map_key(list, index), error.what());
  }
}

void PlanProgram::set_strides(std::size_t launch, std::size_t index, Values values, TensorMap& map) const {
  const BoundTensorMap& bound = *launches_[launch].parameters[index].map;
  for (std::size_t axis = 0; axis < bound.lists[kMapStrides].size(); ++axis) {
    map.strides[axis] = map_number(bound, kMapStrides, axis, values);
  }
}

// Strides that are not given leave no gaps; where they overflow, no check holds.
TensorMap PlanProgram::tensor_map(std::size_t launch, std::size_t index, Values values) const {
  const TensorMapTemplate& from = template_.launches[launch].parameters[index].tensor_map;
  const BoundTensorMap& bound = *launches_[launch].parameters[index].map;
  const auto number = [&](std::size_t list, std::size_t i) { return map_number(bound, list, i, values); };
  TensorMap to{from.argument, from.type, from.nan_fill, static_cast<std::uint32_t>(from.sizes.size())};
  std::int64_t dense = static_cast<std::int64_t>(size_of(from.type));
  for (std::size_t axis = 0; axis < to.axes; ++axis) {
    to.sizes[axis] = number(kMapSizes, axis);
    to.box[axis] = number(kMapBox, axis);
    to.element_strides[axis] = from.element_strides.empty() ? 1 : number(kMapElementStrides, axis);
    if (axis + 1 < to.axes) {
      if (__builtin_mul_overflow(dense, to.sizes[axis], &dense)) {
        dense = std::numeric_limits<std::int64_t>::max();
      }
      to.strides[axis] = dense;
    }
  }
  set_strides(launch, index, values, to);
  to.swizzle = number(kMapModes, 0);
  to.interleave = number(kMapModes, 1);
  to.l2_promotion = number(kMapModes, 2);
  return to;
}

Parameter PlanProgram::parameter(std::size_t launch, std::size_t index, Values values) const {
  const ParameterTemplate& from = template_.launches[launch].parameters[index];
  const BoundParameter& bound = launches_[launch].parameters[index];
  Parameter to{from.name, from.source, from.type, from.role, 0, from.align_bytes, 0};
  const std::int64_t number = parameter_number(launch, index, values);
  to.variable = from.variable;
  to.symbol = from.symbol;
  if (is_buffer(from.source)) {
    to.extent_bytes = static_cast<std::uint64_t>(number);
    to.shape = evaluate_shape(bound.shape, bound.shape_where, values);
    if (bound.map) {
      to.tensor_map = tensor_map(launch, index, values);
    }
  } else {
    to.value = number;
  }
  return to;
}

LaunchShape PlanProgram::shape(std::size_t launch, Values values, bool left_out_too) const {
  const BoundLaunch& bound = launches_[launch];
  const Axes grid = evaluate_axes(bound.grid, bound.where, "/grid", values);
  if (has_zero(grid) && !left_out_too) {
    return {.grid = dim3(grid), .block = {}};
  }
  LaunchShape shape{dim3(grid), dim3(evaluate_axes(bound.block, bound.where, "/block", values)),
                    static_cast<std::uint64_t>(evaluate(
                        bound.shared_bytes[0], ExpressionLocation{bound.where, "/shared_bytes"}, values))};
  if (!bound.cluster.empty()) {
    shape.cluster = dim3(evaluate_axes(bound.cluster, bound.where, "/cluster", values));
  }
  shape.attributes = template_.launches[launch].attributes;
  return shape;
}

LaunchPlan PlanProgram::plan(Values values) const { return make_plan(values, false); }

LaunchPlan PlanProgram::plan_of_all(Values values) const { return make_plan(values, true); }

LaunchPlan PlanProgram::make_plan(Values values, bool all) const {
  LaunchPlan plan;
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const LaunchShape numbers = shape(i, values, all);
    if (numbers.left_out() && !all) {
      continue;
    }
    const LaunchTemplate& from = template_.launches[i];
    Launch launch{from.entry, from.entry_symbol, numbers.grid,      numbers.block, numbers.shared_bytes,
                  {},         numbers.cluster,   numbers.attributes};
    for (std::size_t p = 0; p < from.parameters.size(); ++p) {
      launch.parameters.push_back(parameter(i, p, values));
    }
    plan.launches.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace cubind
