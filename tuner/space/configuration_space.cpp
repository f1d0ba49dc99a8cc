#include "tuner/space/configuration_space.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tuner/space/axis_order.hpp"

namespace cubind {
namespace {

// How many levels a check is remembered for.
std::size_t span_of(const Check& check, const std::vector<std::uint32_t>& order) {
  std::size_t first = order.size();
  std::size_t last = 0;
  for (std::size_t level = 0; level < order.size(); ++level) {
    if (std::find(check.axes.begin(), check.axes.end(), order[level]) != check.axes.end()) {
      first = std::min(first, level);
      last = level;
    }
  }
  return last < first ? 0 : last - first;
}

// Moves the checks of the longest spans from `kept` to `put_off` until the widest frontier has at most half
// as many combinations, and has come half the way to as many as a diagram may have edges: so even the widest
// space takes a few diagrams.
void narrow(std::span<const Axis> axes, std::vector<Check>& kept, std::vector<Check>& put_off,
            std::uint64_t max_edges, const Interrupt& interrupt) {
  const double width = width_bits(narrow_order(axes, kept), axes, kept);
  const double excess = width - std::log2(static_cast<double>(max_edges));
  const double wanted = width - std::max(1.0, excess / 2);
  do {
    ask(interrupt);
    const std::vector<std::uint32_t> order = narrow_order(axes, kept);
    const auto longest = std::max_element(kept.begin(), kept.end(), [&](const Check& a, const Check& b) {
      return span_of(a, order) < span_of(b, order);
    });
    put_off.push_back(std::move(*longest));
    kept.erase(longest);
  } while (!kept.empty() && width_bits(narrow_order(axes, kept), axes, kept) > wanted);
}

}  // namespace

ConfigurationSpace::ConfigurationSpace(std::vector<Axis> axes, std::vector<Check> checks,
                                       const SpaceLimits& limits, const Interrupt& interrupt)
    : axes_(std::move(axes)), limits_(limits) {
  if (axes_.size() > kMaxAxes) {
    throw Error(ErrorCode::InvalidArgument, "space",
                std::to_string(axes_.size()) + " axes, at most " + std::to_string(kMaxAxes) + " are taken");
  }
  for (const Axis& axis : axes_) {
    if (axis.values.empty()) {
      throw Error(ErrorCode::InvalidArgument, "space", quoted(axis.name) + " has no values");
    }
  }
  build(std::move(checks), interrupt);
}

void ConfigurationSpace::build(std::vector<Check> checks, const Interrupt& interrupt) {
  std::optional<Diagram> diagram =
      Diagram::build(axes_, checks, declared_order(axes_.size()), limits_.max_edges, interrupt);
  while (!diagram) {
    diagram = Diagram::build(axes_, checks, narrow_order(axes_, checks), limits_.max_edges, interrupt);
    if (!diagram && checks.empty()) {
      throw Error(ErrorCode::ResourceExhausted, "space",
                  "the axes have more values than " + std::to_string(limits_.max_edges));
    }
    if (!diagram) {
      narrow(axes_, checks, put_off_, limits_.max_edges, interrupt);
    }
  }
  diagram_ = std::move(*diagram);
  if (size() == 0) {
    put_off_.clear();  // no more needs to be excluded
  }
}

std::uint64_t ConfigurationSpace::count() const {
  if (!exact()) {
    throw Error(ErrorCode::ResourceExhausted, "space",
                "the valid configurations are too many to be counted within " +
                    std::to_string(limits_.max_edges) + " steps: there are at most " +
                    std::to_string(size()));
  }
  return size();
}

bool ConfigurationSpace::valid(std::uint64_t number) const {
  return number < size() && (exact() || put_off_hold(point(number)));
}

bool ConfigurationSpace::put_off_hold(const Point& point) const {
  const std::vector<std::int64_t> values = this->values(point);
  std::exception_ptr fault;
  for (const Check& check : put_off_) {
    try {
      if (!check.holds(values)) {
        return false;
      }
    } catch (const Error&) {
      fault = fault ? fault : std::current_exception();
    }
  }
  if (fault) {
    std::rethrow_exception(fault);
  }
  return true;
}

std::vector<std::int64_t> ConfigurationSpace::values(const Point& point) const {
  std::vector<std::int64_t> values(axes_.size());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    values[axis] = axes_[axis].values.at(point.at(axis));
  }
  return values;
}

std::optional<std::uint64_t> ConfigurationSpace::number(const Point& point) const {
  const std::optional<std::uint64_t> number = diagram_.rank(point);
  return number && (exact() || put_off_hold(point)) ? number : std::nullopt;
}

std::optional<std::uint64_t> ConfigurationSpace::number_of_values(
    const std::vector<std::int64_t>& values) const {
  if (values.size() != axes_.size()) {
    return std::nullopt;
  }
  Point point(axes_.size());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const std::vector<std::int64_t>& known = axes_[axis].values;
    const auto found = std::find(known.begin(), known.end(), values[axis]);
    if (found == known.end()) {
      return std::nullopt;
    }
    point[axis] = static_cast<std::uint32_t>(found - known.begin());
  }
  return number(point);
}

std::optional<std::uint64_t> ConfigurationSpace::sample(Random& random) const {
  if (size() == 0) {
    return std::nullopt;
  }
  for (std::uint64_t draw = 0; draw < limits_.max_draws; ++draw) {
    const std::uint64_t number = random.below(size());
    if (valid(number)) {
      return number;
    }
  }
  throw Error(ErrorCode::ResourceExhausted, "space",
              "no valid configuration was met in " + std::to_string(limits_.max_draws) + " draws of " +
                  std::to_string(size()) + ", list fewer values or let constraints read fewer tunables");
}

std::vector<std::uint64_t> ConfigurationSpace::neighbours(std::uint64_t number) const {
  std::vector<std::uint64_t> result;
  Point point = this->point(number);
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const std::uint32_t here = point[axis];
    for (std::uint32_t position = 0; position < axes_[axis].values.size(); ++position) {
      point[axis] = position;
      const std::optional<std::uint64_t> found = position == here ? std::nullopt : this->number(point);
      if (found) {
        result.push_back(*found);
      }
    }
    point[axis] = here;
  }
  return result;
}

}  // namespace cubind
