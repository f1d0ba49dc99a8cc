#include "tuner/plan/plan_program.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr std::int64_t kMaxBlock[3] = {1024, 1024, 64};
constexpr char kAxisNames[3] = {'x', 'y', 'z'};

// The place of an expression, spelled only when something is wrong with it.
struct ExpressionPlace {
  const std::string& base;
  std::string_view member = {};
  std::optional<std::size_t> index = std::nullopt;

  std::string text() const {
    return base + std::string(member) + (index ? "/" + std::to_string(*index) : "");
  }
};

// The evaluator quotes the expression; here the place is put before it.
std::int64_t evaluate(const BoundExpression& expression, const ExpressionPlace& place,
                      std::span<const std::int64_t> values) {
  try {
    return expression.evaluate(values);
  } catch (const ExpressionError& error) {
    refuse(place.text(), error.what());
  }
}

std::array<std::int64_t, 3> evaluate_axes(const std::vector<BoundExpression>& expressions,
                                          const std::string& base, std::string_view member,
                                          std::span<const std::int64_t> values) {
  std::array<std::int64_t, 3> result{1, 1, 1};
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    result[i] = evaluate(expressions[i], ExpressionPlace{base, member, i}, values);
  }
  return result;
}

std::int64_t checked_bytes(std::int64_t elements, DType type, const std::string& place) {
  const auto size = static_cast<std::int64_t>(size_of(type));
  if (elements > std::numeric_limits<std::int64_t>::max() / size) {
    refuse(place,
           std::to_string(elements) + " elements of " + std::string(to_string(type)) + " exceed 2^63 bytes");
  }
  return elements * size;
}

std::vector<std::int64_t> evaluate_shape(const std::vector<BoundExpression>& shape, const std::string& base,
                                         std::span<const std::int64_t> values) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(evaluate(shape[i], ExpressionPlace{base, "", i}, values));
  }
  return axes;
}

// The range of a scalar passed by value. A float takes any integer, rounded.
bool fits(std::int64_t value, DType type) {
  switch (type) {
    case DType::I32:
      return std::in_range<std::int32_t>(value);
    case DType::I8:
      return std::in_range<std::int8_t>(value);
    case DType::U8:
      return std::in_range<std::uint8_t>(value);
    default:
      return true;
  }
}

std::string spelled(const std::array<std::int64_t, 3>& axes) {
  return std::to_string(axes[0]) + " x " + std::to_string(axes[1]) + " x " + std::to_string(axes[2]);
}

Dim3 dim3(const std::array<std::int64_t, 3>& axes) {
  return {static_cast<std::uint32_t>(axes[0]), static_cast<std::uint32_t>(axes[1]),
          static_cast<std::uint32_t>(axes[2])};
}

bool has_zero(const std::array<std::int64_t, 3>& axes) {
  return axes[0] == 0 || axes[1] == 0 || axes[2] == 0;
}

bool does_not_fit(std::string* why, auto&& text) {
  if (why != nullptr) {
    *why = text();
  }
  return false;
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
    : template_(std::move(plan)), types_(problem.types), shared_limit_(device.shared_optin) {
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
  add_symbol("device.sm_count", device.sm_count);
  add_symbol("device.shared_optin", device.shared_optin);
  add_symbol("device.l2_bytes", device.l2_bytes);
  add_symbol("device.cc", device.cc);
}

void PlanProgram::add_symbol(const std::string& name, std::int64_t value) {
  if (symbols_.find(name)) {
    refuse("plan", quoted(name) + " names two of dims, flags, types and tunables");
  }
  symbols_.add(name);
  initial_values_.push_back(value);
}

BoundExpression PlanProgram::bind(const std::string& text, const std::string& place) const {
  try {
    return Expression::parse(text).bind(symbols_);
  } catch (const ExpressionError& error) {
    refuse(place, error.what());
  }
}

std::vector<BoundExpression> PlanProgram::bind_axes(const std::vector<std::string>& texts,
                                                    const std::string& place) const {
  if (texts.empty() || texts.size() > 3) {
    refuse(place, "one to three expressions are needed");
  }
  std::vector<BoundExpression> bound;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    bound.push_back(bind(texts[i], place + "/" + std::to_string(i)));
  }
  return bound;
}

void PlanProgram::bind_launch(std::size_t index) {
  const LaunchTemplate& from = template_.launches[index];
  BoundLaunch bound;
  bound.place = template_.place + "/launches/" + std::to_string(index);
  bound.grid = bind_axes(from.grid, bound.place + "/grid");
  bound.block = bind_axes(from.block, bound.place + "/block");
  bound.shared_bytes.push_back(bind(from.shared_bytes, bound.place + "/shared_bytes"));
  for (const ParameterTemplate& parameter : from.parameters) {
    const bool buffer = parameter.source == ParameterSource::Buffer;
    BoundParameter to;
    to.place = "/arguments/" + parameter.name + (buffer ? "/extent" : "/expr");
    if (parameter.source != ParameterSource::Caller) {
      to.expression = bind(buffer ? parameter.extent : parameter.value, to.place);
    }
    to.shape_place = "/arguments/" + parameter.name + "/shape";
    for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
      to.shape.push_back(bind(parameter.shape[i], to.shape_place + "/" + std::to_string(i)));
    }
    bound.parameters.push_back(std::move(to));
  }
  launches_.push_back(std::move(bound));
}

void PlanProgram::add_launch_checks(std::size_t launch) {
  const BoundLaunch& bound = launches_[launch];
  add_check(Check::Kind::Shape, launch, 0, {bound.grid, bound.block});
  add_check(Check::Kind::Shared, launch, 0, {bound.grid, bound.shared_bytes});
  for (std::size_t i = 0; i < bound.parameters.size(); ++i) {
    const auto& [expression, shape, place, shape_place] = bound.parameters[i];
    if (expression) {
      add_check(Check::Kind::Parameter, launch, i, {std::span(&*expression, 1), shape});
    }
  }
}

void PlanProgram::add_check(Check::Kind kind, std::size_t launch, std::size_t index,
                            std::initializer_list<std::span<const BoundExpression>> expressions) {
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
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    BoundLaunch& bound = launches_[i];
    for (auto* axes : {&bound.grid, &bound.block, &bound.shared_bytes}) {
      for (BoundExpression& expression : *axes) {
        fix(expression, values, varying);
      }
    }
    for (BoundParameter& parameter : bound.parameters) {
      if (parameter.expression) {
        fix(*parameter.expression, values, varying);
      }
    }
    bound.shared_fits = bound.shared_bytes[0].slots().empty() &&
                        !has_zero(evaluate_axes(bound.grid, bound.place, "/grid", values)) &&
                        shared_holds(i, values, nullptr);
  }
}

// What a launch that is left out does not need may have no value.
void PlanProgram::fix(BoundExpression& expression, Values values, const std::vector<bool>& varying) const {
  if (std::ranges::any_of(expression.slots(), [&](std::uint32_t slot) { return varying[slot]; })) {
    return;
  }
  try {
    expression = bind(std::to_string(expression.evaluate(values)), "");
  } catch (const ExpressionError&) {
    // It stays as it is, and fails when it is needed.
  }
}

bool PlanProgram::holds(std::size_t check, Values values) const {
  return check_holds(checks_[check], values, nullptr);
}

PlanProgram::CheckName PlanProgram::check_name(std::size_t check) const {
  const Check& named = checks_[check];
  switch (named.kind) {
    case Check::Kind::Constraint:
      return {"/constraints/" + std::to_string(named.index), constraints_[named.index].text()};
    case Check::Kind::Shape:
      return {launches_[named.launch].place, "grid and block within the launch limits"};
    case Check::Kind::Shared:
      return {launches_[named.launch].place + "/shared_bytes",
              "at most the " + std::to_string(shared_limit_) + " bytes of shared memory of a block"};
    case Check::Kind::Parameter:
      return {launches_[named.launch].parameters[named.index].place, "a value that its type holds"};
  }
  throw Error(ErrorCode::Internal, "plan", "unknown kind of check");
}

std::string PlanProgram::describe(std::size_t check, Values values) const {
  std::string why;
  check_holds(checks_[check], values, &why);
  return why + bindings(checks_[check], values);
}

bool PlanProgram::check_holds(const Check& check, Values values, std::string* why) const {
  switch (check.kind) {
    case Check::Kind::Constraint:
      return constraint_holds(check.index, values, why);
    case Check::Kind::Shape:
      return shape_holds(check.launch, values, why);
    case Check::Kind::Shared:
      return shared_holds(check.launch, values, why);
    case Check::Kind::Parameter:
      return parameter_holds(check, values, why);
  }
  throw Error(ErrorCode::Internal, "plan", "unknown kind of check");
}

bool PlanProgram::constraint_holds(std::size_t index, Values values, std::string* why) const {
  const BoundExpression& constraint = constraints_[index];
  try {
    if (constraint.evaluate_bool(values)) {
      return true;
    }
  } catch (const ExpressionError& error) {
    refuse("/constraints/" + std::to_string(index), error.what());
  }
  return does_not_fit(why, [&] { return "constraint " + quoted(constraint.text()) + " is false"; });
}

bool PlanProgram::shape_holds(std::size_t launch, Values values, std::string* why) const {
  const BoundLaunch& bound = launches_[launch];
  const Axes grid = evaluate_axes(bound.grid, bound.place, "/grid", values);
  if (has_zero(grid)) {
    return true;
  }  // never launched
  const Axes block = evaluate_axes(bound.block, bound.place, "/block", values);
  for (std::size_t i = 0; i < 3; ++i) {
    if (grid[i] < 0 || grid[i] > kMaxGrid[i]) {
      return does_not_fit(why, [&] {
        return bound.place + ": grid " + spelled(grid) + " leaves 0 to " + std::to_string(kMaxGrid[i]) +
               " in " + kAxisNames[i];
      });
    }
    if (block[i] < 1 || block[i] > kMaxBlock[i]) {
      return does_not_fit(why, [&] {
        return bound.place + ": block " + spelled(block) + " leaves 1 to " + std::to_string(kMaxBlock[i]) +
               " in " + kAxisNames[i];
      });
    }
  }
  if (block[0] * block[1] * block[2] <= kMaxThreadsPerBlock) {
    return true;
  }
  return does_not_fit(why, [&] {
    return bound.place + ": block " + spelled(block) + " has " +
           std::to_string(block[0] * block[1] * block[2]) + " threads, a block has at most " +
           std::to_string(kMaxThreadsPerBlock);
  });
}

bool PlanProgram::shared_holds(std::size_t launch, Values values, std::string* why) const {
  const BoundLaunch& bound = launches_[launch];
  if (bound.shared_fits || has_zero(evaluate_axes(bound.grid, bound.place, "/grid", values))) {
    return true;
  }
  const std::int64_t dynamic =
      evaluate(bound.shared_bytes[0], ExpressionPlace{bound.place, "/shared_bytes"}, values);
  const auto fixed = static_cast<std::int64_t>(template_.static_shared_bytes);
  if (dynamic >= 0 && dynamic <= shared_limit_ && fixed <= shared_limit_ - dynamic) {
    return true;
  }
  return does_not_fit(why, [&] {
    return bound.place + ": " + std::to_string(dynamic) + " bytes of dynamic and " + std::to_string(fixed) +
           " of static shared memory, the device has " + std::to_string(shared_limit_) + " (" +
           quoted(bound.shared_bytes[0].text()) + ")";
  });
}

bool PlanProgram::parameter_holds(const Check& check, Values values, std::string* why) const {
  const BoundParameter& bound = launches_[check.launch].parameters[check.index];
  const ParameterTemplate& from = template_.launches[check.launch].parameters[check.index];
  if (from.source == ParameterSource::Buffer) {
    return extent_holds(bound, from, values, why);
  }
  const std::int64_t value = evaluate(*bound.expression, ExpressionPlace{bound.place}, values);
  if (fits(value, from.type)) {
    return true;
  }
  return does_not_fit(why, [&] {
    return bound.place + ": " + std::to_string(value) + " does not fit " + std::string(to_string(from.type)) +
           " (" + quoted(from.value) + ")";
  });
}

bool PlanProgram::extent_holds(const BoundParameter& bound, const ParameterTemplate& from, Values values,
                               std::string* why) const {
  const std::int64_t elements = evaluate(*bound.expression, ExpressionPlace{bound.place}, values);
  if (elements < 0) {
    return does_not_fit(why, [&] {
      return bound.place + ": " + std::to_string(elements) + " elements (" + quoted(from.extent) + ")";
    });
  }
  checked_bytes(elements, from.type, bound.place);
  if (bound.shape.empty()) {
    return true;
  }
  const auto axes = evaluate_shape(bound.shape, bound.shape_place, values);
  if (element_count(axes) != elements) {
    refuse(bound.shape_place, "a buffer of [" + join(axes, ", ") + "] does not have the " +
                                  std::to_string(elements) + " elements of its extent " +
                                  quoted(from.extent));
  }
  return true;
}

std::string PlanProgram::bindings(const Check& check, Values values) const {
  std::string text;
  for (const std::uint32_t slot : check.slots) {
    text += text.empty() ? " where " : ", ";
    text += symbols_.name(slot) + " = " + std::to_string(values[slot]);
  }
  return text;
}

std::int64_t PlanProgram::parameter_number(std::size_t launch, std::size_t index, Values values) const {
  const BoundParameter& bound = launches_[launch].parameters[index];
  if (!bound.expression) {
    return 0;
  }
  const ParameterTemplate& from = template_.launches[launch].parameters[index];
  const std::int64_t value = evaluate(*bound.expression, ExpressionPlace{bound.place}, values);
  return from.source == ParameterSource::Buffer ? checked_bytes(value, from.type, bound.place) : value;
}

Parameter PlanProgram::parameter(std::size_t launch, std::size_t index, Values values) const {
  const ParameterTemplate& from = template_.launches[launch].parameters[index];
  const BoundParameter& bound = launches_[launch].parameters[index];
  Parameter to{from.name, from.source, from.type, from.role, 0, from.align_bytes, 0};
  const std::int64_t number = parameter_number(launch, index, values);
  if (from.source == ParameterSource::Buffer) {
    to.extent_bytes = static_cast<std::uint64_t>(number);
    to.shape = evaluate_shape(bound.shape, bound.shape_place, values);
  } else {
    to.value = number;
  }
  return to;
}

LaunchShape PlanProgram::shape(std::size_t launch, Values values, bool left_out_too) const {
  const BoundLaunch& bound = launches_[launch];
  const Axes grid = evaluate_axes(bound.grid, bound.place, "/grid", values);
  if (has_zero(grid) && !left_out_too) {
    return {dim3(grid), {}, 0};
  }
  return {dim3(grid), dim3(evaluate_axes(bound.block, bound.place, "/block", values)),
          static_cast<std::uint64_t>(
              evaluate(bound.shared_bytes[0], ExpressionPlace{bound.place, "/shared_bytes"}, values))};
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
    Launch launch{from.entry, from.entry_symbol, numbers.grid, numbers.block, numbers.shared_bytes, {}};
    for (std::size_t p = 0; p < from.parameters.size(); ++p) {
      launch.parameters.push_back(parameter(i, p, values));
    }
    plan.launches.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace cubind
