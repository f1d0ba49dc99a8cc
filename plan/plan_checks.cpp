// What a PlanProgram's checks demand: the spec's constraints, launch limits, and values that their types
// hold.
#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/evaluation.hpp"
#include "plan/plan_program.hpp"

namespace cubind {
namespace {

constexpr std::int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr std::int64_t kMaxBlock[3] = {1024, 1024, 64};
constexpr std::int64_t kFirstWithClusters = 90;  // compute capability 9.0
constexpr char kAxisNames[3] = {'x', 'y', 'z'};

std::string spelled(const std::array<std::int64_t, 3>& axes) {
  return std::to_string(axes[0]) + " x " + std::to_string(axes[1]) + " x " + std::to_string(axes[2]);
}

bool does_not_fit(std::string* why, auto&& text) {
  if (why != nullptr) {
    *why = text();
  }
  return false;
}

}  // namespace

bool PlanProgram::holds(std::size_t check, Values values) const {
  return check_holds(checks_[check], values, nullptr);
}

PlanProgram::CheckName PlanProgram::check_name(std::size_t check) const {
  const Check& named = checks_[check];
  switch (named.kind) {
    case Check::Kind::Constraint:
      return {"/constraints/" + std::to_string(named.index), constraints_[named.index].text()};
    case Check::Kind::Shape:
      return {launches_[named.launch].where, "grid, block and cluster within the launch limits"};
    case Check::Kind::Shared:
      return {launches_[named.launch].where + "/shared_bytes",
              "at most the " + std::to_string(shared_limit_) + " bytes of shared memory of a block"};
    case Check::Kind::Parameter:
      return {launches_[named.launch].parameters[named.index].where, "a value that its type holds"};
    case Check::Kind::TensorMap:
      return {launches_[named.launch].parameters[named.index].map->where,
              "a tensor map within its buffer and the limits of TMA"};
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
    case Check::Kind::TensorMap:
      return tensor_map_holds(check, values, why);
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
  const Axes grid = evaluate_axes(bound.grid, bound.where, "/grid", values);
  if (has_zero(grid)) {
    return true;
  }  // never launched
  const Axes block = evaluate_axes(bound.block, bound.where, "/block", values);
  for (std::size_t i = 0; i < 3; ++i) {
    if (grid[i] < 0 || grid[i] > kMaxGrid[i]) {
      return does_not_fit(why, [&] {
        return bound.where + ": grid " + spelled(grid) + " leaves 0 to " + std::to_string(kMaxGrid[i]) +
               " in " + kAxisNames[i];
      });
    }
    if (block[i] < 1 || block[i] > kMaxBlock[i]) {
      return does_not_fit(why, [&] {
        return bound.where + ": block " + spelled(block) + " leaves 1 to " + std::to_string(kMaxBlock[i]) +
               " in " + kAxisNames[i];
      });
    }
  }
  if (block[0] * block[1] * block[2] > kMaxThreadsPerBlock) {
    return does_not_fit(why, [&] {
      return bound.where + ": block " + spelled(block) + " has " +
             std::to_string(block[0] * block[1] * block[2]) + " threads, a block has at most " +
             std::to_string(kMaxThreadsPerBlock);
    });
  }
  return bound.cluster.empty() || cluster_holds(bound, grid, values, why);
}

bool PlanProgram::cluster_holds(const BoundLaunch& bound, const Axes& grid, Values values,
                                std::string* why) const {
  const Axes cluster = evaluate_axes(bound.cluster, bound.where, "/cluster", values);
  const auto wrong = [&](const std::string& cause) {
    return does_not_fit(why, [&] { return bound.where + ": cluster " + spelled(cluster) + cause; });
  };
  if (compute_capability_ < kFirstWithClusters) {
    return wrong(": GPUs before compute capability 9.0 have no clusters");
  }
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (cluster[i] < 1 || cluster[i] > kMaxClusterBlocks) {
      return wrong(std::string(" leaves 1 to ") + std::to_string(kMaxClusterBlocks) + " in " + kAxisNames[i]);
    }
    if (grid[i] % cluster[i] != 0) {
      return wrong(std::string(" does not divide the grid ") + spelled(grid) + " in " + kAxisNames[i]);
    }
    blocks *= cluster[i];
  }
  return blocks <= kMaxClusterBlocks || wrong(" has " + std::to_string(blocks) + " blocks, at most " +
                                              std::to_string(kMaxClusterBlocks) + " are portable");
}

bool PlanProgram::shared_holds(std::size_t launch, Values values, std::string* why) const {
  const BoundLaunch& bound = launches_[launch];
  if (bound.shared_fits || has_zero(evaluate_axes(bound.grid, bound.where, "/grid", values))) {
    return true;
  }
  const std::int64_t dynamic =
      evaluate(bound.shared_bytes[0], ExpressionLocation{bound.where, "/shared_bytes"}, values);
  const auto fixed = static_cast<std::int64_t>(template_.static_shared_bytes);
  if (dynamic >= 0 && dynamic <= shared_limit_ && fixed <= shared_limit_ - dynamic) {
    return true;
  }
  return does_not_fit(why, [&] {
    return bound.where + ": " + std::to_string(dynamic) + " bytes of dynamic and " + std::to_string(fixed) +
           " of static shared memory, the device has " + std::to_string(shared_limit_) + " (" +
           quoted(bound.shared_bytes[0].text()) + ")";
  });
}

bool PlanProgram::parameter_holds(const Check& check, Values values, std::string* why) const {
  const BoundParameter& bound = launches_[check.launch].parameters[check.index];
  const ParameterTemplate& from = template_.launches[check.launch].parameters[check.index];
  if (is_buffer(from.source)) {
    return extent_holds(bound, from, values, why);
  }
  const std::int64_t value = evaluate(*bound.expression, ExpressionLocation{bound.where}, values);
  if (holds_value(from.type, value)) {
    return true;
  }
  return does_not_fit(why, [&] {
    return bound.where + ": " + std::to_string(value) + " does not fit " + std::string(to_string(from.type)) +
           " (" + quoted(from.value) + ")";
  });
}

bool PlanProgram::tensor_map_holds(const Check& check, Values values, std::string* why) const {
  const BoundLaunch& bound = launches_[check.launch];
  if (has_zero(evaluate_axes(bound.grid, bound.where, "/grid", values))) {
    return true;
  }  // never launched
  const ParameterTemplate& from = template_.launches[check.launch].parameters[check.index];
  const std::int64_t bytes = parameter_number(check.launch, check.index, values);
  const auto fault =
      tensor_map_fault(tensor_map(check.launch, check.index, values),
                       {static_cast<std::uint64_t>(bytes), from.align_bytes}, compute_capability_);
  return !fault || does_not_fit(why, [&] {
    const std::string& where = bound.parameters[check.index].map->where;
    return where + (fault->key.empty() ? "" : "/" + fault->key) + ": " + fault->cause;
  });
}

bool PlanProgram::extent_holds(const BoundParameter& bound, const ParameterTemplate& from, Values values,
                               std::string* why) const {
  const std::int64_t elements = evaluate(*bound.expression, ExpressionLocation{bound.where}, values);
  if (elements < 0) {
    return does_not_fit(why, [&] {
      return bound.where + ": " + std::to_string(elements) + " elements (" + quoted(from.extent) + ")";
    });
  }
  checked_bytes(elements, from.type, bound.where);
  if (bound.shape.empty()) {
    return true;
  }
  const auto axes = evaluate_shape(bound.shape, bound.shape_where, values);
  if (element_count(axes) != elements) {
    refuse(bound.shape_where, "a buffer of [" + join(axes, ", ") + "] does not have the " +
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

}  // namespace cubind
