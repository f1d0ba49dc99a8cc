#include "tuner/space/axis_order.hpp"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace cubind {
namespace {

double bits(const Axis& axis) { return std::log2(static_cast<double>(axis.values.size())); }

using AxisSet = std::bitset<kMaxAxes>;

// The sets of axes that checks read, each once.
std::vector<AxisSet> sets_of(std::span<const Check> checks) {
  std::vector<AxisSet> sets;
  for (const Check& check : checks) {
    AxisSet set;
    for (const std::uint32_t axis : check.axes) {
      set.set(axis);
    }
    if (std::ranges::find(sets, set) == sets.end()) {
      sets.push_back(set);
    }
  }
  return sets;
}

// Takes one axis after the other, each time the one that leaves the narrowest frontier.
class GreedyOrder {
 public:
  GreedyOrder(std::span<const double> widths, std::span<const AxisSet> checks)
      : bits_(widths), checks_(checks) {}

  std::vector<std::uint32_t> from(std::uint32_t first) && {
    take(first);
    while (order_.size() < bits_.size()) {
      take(narrowest());
    }
    return std::move(order_);
  }

 private:
  void take(std::uint32_t axis) {
    taken_.set(axis);
    order_.push_back(axis);
  }

  std::uint32_t narrowest() {
    std::uint32_t best = 0;
    double best_width = std::numeric_limits<double>::infinity();
    for (std::uint32_t axis = 0; axis < bits_.size(); ++axis) {
      if (taken_[axis]) {
        continue;
      }
      const double width = frontier_width(AxisSet(taken_).set(axis));
      if (width < best_width) {
        best_width = width;
        best = axis;
      }
    }
    return best;
  }

  double frontier_width(const AxisSet& taken) const {
    AxisSet remembered;
    for (const AxisSet& check : checks_) {
      if ((check & ~taken).any()) {
        remembered |= check & taken;
      }
    }
    double width = 0;
    for (std::size_t axis = 0; axis < bits_.size(); ++axis) {
      width += remembered[axis] ? bits_[axis] : 0;
    }
    return width;
  }

  std::span<const double> bits_;  // by axis
  std::span<const AxisSet> checks_;
  AxisSet taken_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> declared_order(std::size_t axes) {
  std::vector<std::uint32_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::uint32_t> narrow_order(std::span<const Axis> axes, std::span<const Check> checks) {
  std::vector<double> bits_of_axes;
  std::ranges::transform(axes, std::back_inserter(bits_of_axes), bits);
  const std::vector<AxisSet> sets = sets_of(checks);
  std::vector<std::uint32_t> best = declared_order(axes.size());
  double best_width = width_bits(best, axes, checks);
  for (std::uint32_t first = 0; first < axes.size(); ++first) {
    std::vector<std::uint32_t> order = GreedyOrder(bits_of_axes, sets).from(first);
    const double width = width_bits(order, axes, checks);
    if (width < best_width) {
      best_width = width;
      best = std::move(order);
    }
  }
  return best;
}

std::vector<std::vector<std::uint32_t>> frontiers(std::span<const std::uint32_t> order,
                                                  std::span<const Axis> axes, std::span<const Check> checks) {
  std::vector<std::size_t> level_of(order.size());
  for (std::size_t level = 0; level < order.size(); ++level) {
    level_of[order[level]] = level;
  }
  std::vector<std::size_t> last_use(order.size(), 0);
  for (const Check& check : checks) {
    std::size_t last = 0;
    for (const std::uint32_t axis : check.axes) {
      last = std::max(last, level_of[axis]);
    }
    for (const std::uint32_t axis : check.axes) {
      last_use[axis] = std::max(last_use[axis], last);
    }
  }
  std::vector<std::vector<std::uint32_t>> result(order.size());
  for (std::size_t level = 0; level < order.size(); ++level) {
    for (std::size_t earlier = 0; earlier <= level; ++earlier) {
      if (last_use[order[earlier]] > level && axes[order[earlier]].values.size() > 1) {
        result[level].push_back(order[earlier]);
      }
    }
  }
  return result;
}

double width_bits(std::span<const std::uint32_t> order, std::span<const Axis> axes,
                  std::span<const Check> checks) {
  double widest = 0;
  for (const std::vector<std::uint32_t>& frontier : frontiers(order, axes, checks)) {
    double width = 0;
    for (const std::uint32_t axis : frontier) {
      width += bits(axes[axis]);
    }
    widest = std::max(widest, width);
  }
  return widest;
}

}  // namespace cubind
