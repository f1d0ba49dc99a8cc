#include "tuner/space/axis_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cubind {
namespace {

double bits(const Axis& axis) { return std::log2(static_cast<double>(axis.values.size())); }

// Takes one axis after the other, each time the one that leaves the narrowest frontier.
class GreedyOrder {
 public:
  GreedyOrder(std::span<const Axis> axes, std::span<const Check> checks)
      : axes_(axes), checks_(checks), taken_(axes.size(), false) {}

  std::vector<std::uint32_t> from(std::uint32_t first) && {
    take(first);
    while (order_.size() < axes_.size()) {
      take(narrowest());
    }
    return std::move(order_);
  }

 private:
  void take(std::uint32_t axis) {
    taken_[axis] = true;
    order_.push_back(axis);
  }

  std::uint32_t narrowest() {
    std::uint32_t best = 0;
    double best_width = std::numeric_limits<double>::infinity();
    for (std::uint32_t axis = 0; axis < axes_.size(); ++axis) {
      if (taken_[axis]) {
        continue;
      }
      taken_[axis] = true;
      const double width = frontier_width();
      taken_[axis] = false;
      if (width < best_width) {
        best_width = width;
        best = axis;
      }
    }
    return best;
  }

  double frontier_width() const {
    std::vector<bool> remembered(axes_.size(), false);
    for (const Check& check : checks_) {
      const bool open =
          std::any_of(check.axes.begin(), check.axes.end(), [&](auto axis) { return !taken_[axis]; });
      for (const std::uint32_t axis : check.axes) {
        remembered[axis] = remembered[axis] || (open && taken_[axis]);
      }
    }
    double width = 0;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      width += remembered[axis] ? bits(axes_[axis]) : 0;
    }
    return width;
  }

  std::span<const Axis> axes_;
  std::span<const Check> checks_;
  std::vector<bool> taken_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> declared_order(std::size_t axes) {
  std::vector<std::uint32_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::uint32_t> narrow_order(std::span<const Axis> axes, std::span<const Check> checks) {
  std::vector<std::uint32_t> best = declared_order(axes.size());
  double best_width = width_bits(best, axes, checks);
  for (std::uint32_t first = 0; first < axes.size(); ++first) {
    std::vector<std::uint32_t> order = GreedyOrder(axes, checks).from(first);
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
