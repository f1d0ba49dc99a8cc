#include "tuner/space/diagram.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "tuner/space/axis_order.hpp"
#include "tuner/space/number_table.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMostConfigurations = std::uint64_t{1} << 62;  // so that no sum of two wraps

}  // namespace

// Down the levels it finds the states: what later checks may read of the choices so far, and whether a check
// has faulted. States are equal where these are. Up again it makes the nodes: states from which nothing valid
// is reached vanish, and those that can be continued alike become one.
class DiagramBuilder {
 public:
  DiagramBuilder(std::span<const Axis> axes, std::span<const Check> checks, std::vector<std::uint32_t> order,
                 std::uint64_t max_edges, const Interrupt& interrupt)
      : axes_(axes),
        checks_(checks),
        order_(std::move(order)),
        max_edges_(max_edges),
        interrupt_(interrupt),
        frontiers_(frontiers(order_, axes, checks)),
        decided_(order_.size()),
        states_(order_.size() + 1),
        point_(axes.size(), 0),
        values_(axes.size()) {
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      values_[axis] = axes[axis].values.front();
    }
    for (std::uint32_t check = 0; check < checks.size(); ++check) {
      if (checks[check].axes.empty()) {
        constant_.push_back(check);
      } else {
        decided_[level_of(checks[check])].push_back(check);
      }
    }
  }

  std::optional<Diagram> run() {
    const Verdict constant = verdict(constant_);
    if (constant == Verdict::Fails) {
      return Diagram();
    }
    states_[0].keys.push_back(constant == Verdict::Faults ? 1 : 0);
    for (std::size_t level = 0; level < order_.size(); ++level) {
      if (!expand(level)) {
        return std::nullopt;
      }
    }
    throw_reached_fault();
    reduce();
    return std::move(diagram_);
  }

 private:
  enum class Verdict : std::uint8_t { Holds, Fails, Faults };
  static constexpr std::uint32_t kDead = Diagram::kDead;

  // The states at the top of a level. A key is the positions on the frontier above, mixed by their radices,
  // times two, plus one where a check has faulted.
  struct States {
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> found_by;  // the edge of the level above that led here first
    std::vector<std::uint32_t> child;     // state * degree + position: a state of the next level, or kDead
  };

  std::size_t degree(std::size_t level) const { return axes_[order_[level]].values.size(); }

  std::size_t level_of(const Check& check) const {
    std::size_t last = 0;
    for (std::size_t level = 0; level < order_.size(); ++level) {
      if (std::find(check.axes.begin(), check.axes.end(), order_[level]) != check.axes.end()) {
        last = level;
      }
    }
    return last;
  }

  void choose(std::uint32_t axis, std::uint32_t position) {
    point_[axis] = position;
    values_[axis] = axes_[axis].values[position];
  }

  Verdict verdict(const std::vector<std::uint32_t>& checks) const {
    Verdict result = Verdict::Holds;
    for (const std::uint32_t check : checks) {
      try {
        if (!checks_[check].holds(values_)) {
          return Verdict::Fails;
        }
      } catch (const Error&) {
        result = Verdict::Faults;
      }
    }
    return result;
  }

  // ---- Down ----

  // Chooses what a state remembers.
  void restore(std::size_t level, std::uint64_t key) {
    key /= 2;
    if (level == 0) {
      return;
    }
    for (const std::uint32_t axis : frontiers_[level - 1]) {
      const std::uint64_t radix = axes_[axis].values.size();
      choose(axis, static_cast<std::uint32_t>(key % radix));
      key /= radix;
    }
  }

  // Whether a key can tell the frontier's combinations apart.
  bool keys_fit(std::size_t level) const {
    std::uint64_t combinations = 2;
    for (const std::uint32_t axis : frontiers_[level]) {
      if (__builtin_mul_overflow(combinations, axes_[axis].values.size(), &combinations)) {
        return false;
      }
    }
    return true;
  }

  std::uint64_t key(std::size_t level, bool faulted) const {
    std::uint64_t result = 0;
    const std::vector<std::uint32_t>& frontier = frontiers_[level];
    for (auto axis = frontier.rbegin(); axis != frontier.rend(); ++axis) {
      result = result * axes_[*axis].values.size() + point_[*axis];
    }
    return 2 * result + (faulted ? 1 : 0);
  }

  // False where the limit is reached.
  bool expand(std::size_t level) {
    States& from = states_[level];
    edges_ += from.keys.size() * degree(level);
    if (edges_ > max_edges_ || !keys_fit(level)) {
      return false;
    }
    NumberTable numbers;
    from.child.reserve(from.keys.size() * degree(level));
    for (const std::uint64_t key : from.keys) {
      restore(level, key);
      for (std::uint32_t position = 0; position < degree(level); ++position) {
        if (++steps_ % kBetweenInterrupts == 0) {
          ask(interrupt_);
        }
        choose(order_[level], position);
        from.child.push_back(next_state(level, key % 2 == 1, numbers));
      }
    }
    return true;
  }

  std::uint32_t next_state(std::size_t level, bool faulted, NumberTable& numbers) {
    const Verdict here = verdict(decided_[level]);
    if (here == Verdict::Fails) {
      return kDead;
    }
    States& next = states_[level + 1];
    const std::uint64_t wanted = key(level, faulted || here == Verdict::Faults);
    const std::uint32_t state =
        numbers.number(wanted, [&](std::uint32_t one) { return next.keys[one] == wanted; });
    if (state == next.keys.size()) {
      next.keys.push_back(wanted);
      next.found_by.push_back(static_cast<std::uint32_t>(states_[level].child.size()));
    }
    return state;
  }

  // A configuration that faults and that nothing excludes: its checks are asked again, now to throw.
  void throw_reached_fault() {
    const std::vector<std::uint64_t>& ends = states_.back().keys;
    const auto faulted = std::find(ends.begin(), ends.end(), 1);
    if (faulted == ends.end()) {
      return;
    }
    auto state = static_cast<std::uint32_t>(faulted - ends.begin());
    for (std::size_t level = order_.size(); level-- > 0;) {
      const std::uint32_t edge = states_[level + 1].found_by[state];
      choose(order_[level], edge % static_cast<std::uint32_t>(degree(level)));
      state = edge / static_cast<std::uint32_t>(degree(level));
    }
    for (const Check& check : checks_) {
      check.holds(values_);
    }
  }

  // ---- Up ----

  void reduce() {
    diagram_.levels_.resize(order_.size());
    std::vector<std::uint32_t> node_of(states_.back().keys.size(), 0);  // at the end there is one node
    std::vector<std::uint64_t> counts = {1};                            // of the nodes below
    for (std::size_t level = order_.size(); level-- > 0;) {
      std::tie(node_of, counts) = reduce_level(level, node_of, counts);
    }
    if (!node_of.empty() && node_of[0] != kDead) {
      diagram_.root_ = node_of[0];
      diagram_.count_ = counts[node_of[0]];
    }
  }

  // The node of each state, or kDead, and the count of each node.
  std::pair<std::vector<std::uint32_t>, std::vector<std::uint64_t>> reduce_level(
      std::size_t level, const std::vector<std::uint32_t>& node_below,
      const std::vector<std::uint64_t>& counts_below) {
    const std::size_t width = degree(level);
    Diagram::Level& made = diagram_.levels_[level];
    made.axis = order_[level];
    made.degree = static_cast<std::uint32_t>(width);
    std::vector<std::uint32_t> node_of(states_[level].keys.size(), kDead);
    std::vector<std::uint64_t> counts;
    NumberTable numbers;
    std::vector<std::uint32_t> children(width);
    for (std::size_t state = 0; state < node_of.size(); ++state) {
      bool dead = true;
      std::uint64_t hash = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const std::uint32_t below = states_[level].child[state * width + i];
        children[i] = below == kDead ? kDead : node_below[below];
        dead = dead && children[i] == kDead;
        hash = (hash ^ children[i]) * 0x100000001b3;
      }
      if (dead) {
        continue;
      }
      node_of[state] = numbers.number(hash, [&](std::uint32_t node) {
        return std::equal(children.begin(), children.end(),
                          made.child.begin() + std::ptrdiff_t(node * width));
      });
      if (node_of[state] == counts.size()) {
        counts.push_back(add_node(made, children, counts_below));
      }
    }
    states_[level] = {};
    made.child.shrink_to_fit();
    made.before.shrink_to_fit();
    return {std::move(node_of), std::move(counts)};
  }

  static std::uint64_t add_node(Diagram::Level& level, const std::vector<std::uint32_t>& children,
                                const std::vector<std::uint64_t>& counts_below) {
    std::uint64_t count = 0;
    level.before.push_back(0);
    for (const std::uint32_t child : children) {
      level.child.push_back(child);
      count += child == kDead ? 0 : counts_below[child];
      if (count > kMostConfigurations) {
        throw Error(ErrorCode::ResourceExhausted, "space", "more than 2^62 configurations are valid");
      }
      level.before.push_back(count);
    }
    return count;
  }

  std::span<const Axis> axes_;
  std::span<const Check> checks_;
  const std::vector<std::uint32_t> order_;
  const std::uint64_t max_edges_;
  const Interrupt& interrupt_;
  const std::vector<std::vector<std::uint32_t>> frontiers_;
  std::vector<std::vector<std::uint32_t>> decided_;  // by level: the checks that it completes
  std::vector<std::uint32_t> constant_;              // checks that read no axis
  std::vector<States> states_;
  Point point_;
  std::vector<std::int64_t> values_;  // of point_
  std::uint64_t edges_ = 0, steps_ = 0;
  Diagram diagram_;
};

std::optional<Diagram> Diagram::build(std::span<const Axis> axes, std::span<const Check> checks,
                                      std::vector<std::uint32_t> order, std::uint64_t max_edges,
                                      const Interrupt& interrupt) {
  return DiagramBuilder(axes, checks, std::move(order), max_edges, interrupt).run();
}

std::size_t Diagram::memory() const {
  std::size_t bytes = 0;
  for (const Level& level : levels_) {
    bytes +=
        level.child.capacity() * sizeof(level.child[0]) + level.before.capacity() * sizeof(level.before[0]);
  }
  return bytes;
}

std::optional<std::uint64_t> Diagram::rank(const Point& point) const {
  if (root_ == kDead || point.size() != levels_.size()) {
    return std::nullopt;
  }
  std::uint64_t rank = 0;
  std::uint32_t node = root_;
  for (const Level& level : levels_) {
    const std::uint32_t position = point[level.axis];
    if (position >= level.degree) {
      return std::nullopt;
    }
    rank += level.before[std::size_t{node} * (level.degree + 1) + position];
    node = level.child[std::size_t{node} * level.degree + position];
    if (node == kDead) {
      return std::nullopt;
    }
  }
  return rank;
}

Point Diagram::unrank(std::uint64_t rank) const {
  if (rank >= count_) {
    throw Error(ErrorCode::Internal, "space",
                "there is no configuration " + std::to_string(rank) + " of " + std::to_string(count_));
  }
  Point point(levels_.size());
  std::uint32_t node = root_;
  for (const Level& level : levels_) {
    // The last position with no more than `rank` before it: those without configurations have as many before
    // them as the next.
    const auto first = level.before.begin() + std::ptrdiff_t(std::size_t{node} * (level.degree + 1));
    const auto after = std::upper_bound(first, first + level.degree + 1, rank);
    const auto position = static_cast<std::uint32_t>(after - first - 1);
    point[level.axis] = position;
    rank -= first[position];
    node = level.child[std::size_t{node} * level.degree + position];
  }
  return point;
}

}  // namespace cubind
