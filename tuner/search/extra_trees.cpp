#include "tuner/search/extra_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cubind {

// Grows one tree down to leaves of one target value.
class TreeGrower {
 public:
  using Node = ExtraTrees::Node;
  using Features = ExtraTrees::Features;

  TreeGrower(const std::vector<Features>& inputs, const std::vector<double>& targets, Random& random,
             const ExtraTreesSettings& settings)
      : inputs_(inputs), targets_(targets), random_(random), settings_(settings), rows_(inputs.size()) {
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
  }

  std::vector<Node> grow() && {
    grow(0, rows_.size());
    return std::move(nodes_);
  }

 private:
  static constexpr double kAlike = 1e-12;  // targets this close are not told apart

  struct Split {
    Node node;
    double gain = 0;  // by how much it lessens the sum of squared deviations
  };

  std::uint32_t grow(std::size_t begin, std::size_t end) {
    const auto at = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
    Split best;
    if (!alike(begin, end)) {
      // Features that do not vary here count for less than a try.
      std::size_t left = settings_.splits;
      for (std::size_t tries = 4 * settings_.splits; left > 0 && tries > 0; --tries) {
        left -= try_split(begin, end, best) ? 1 : 0;
      }
    }
    if (best.gain <= 0) {
      nodes_[at].value = sum_of(begin, end) / static_cast<double>(end - begin);
      return at;
    }
    const auto middle = std::partition(
        rows_.begin() + std::ptrdiff_t(begin), rows_.begin() + std::ptrdiff_t(end),
        [&](std::size_t row) { return ExtraTrees::asked(best.node, inputs_[row]) <= best.node.threshold; });
    const auto border = static_cast<std::size_t>(middle - rows_.begin());
    best.node.below = grow(begin, border);
    best.node.above = grow(border, end);
    nodes_[at] = best.node;
    return at;
  }

  bool alike(std::size_t begin, std::size_t end) const {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (std::size_t i = begin; i < end; ++i) {
      least = std::min(least, targets_[rows_[i]]);
      most = std::max(most, targets_[rows_[i]]);
    }
    return most - least < kAlike;
  }

  double sum_of(std::size_t begin, std::size_t end) const {
    return std::accumulate(rows_.begin() + std::ptrdiff_t(begin), rows_.begin() + std::ptrdiff_t(end), 0.0,
                           [&](double sum, std::size_t row) { return sum + targets_[row]; });
  }

  // Draws a split and keeps the better one. False where its feature does not vary.
  bool try_split(std::size_t begin, std::size_t end, Split& best) {
    Node node;
    const std::size_t features = inputs_.front().size();
    node.first = static_cast<std::uint32_t>(random_.below(features));
    node.second =
        random_.uniform() < settings_.sums ? static_cast<std::uint32_t>(random_.below(features)) : node.first;
    asked_.resize(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      asked_[i - begin] = ExtraTrees::asked(node, inputs_[rows_[i]]);
    }
    const auto [least, most] = std::minmax_element(asked_.begin(), asked_.end());
    if (*most - *least < kAlike) {
      return false;
    }
    node.threshold = *least + (*most - *least) * random_.uniform();
    double below = 0;
    double above = 0;
    double count = 0;  // below
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_below = asked_[i - begin] <= node.threshold;
      const double target = targets_[rows_[i]];
      count += is_below ? 1 : 0;
      below += is_below ? target : 0;
      above += is_below ? 0 : target;
    }
    const auto all = static_cast<double>(end - begin);
    if (count == 0 || count == all) {
      return false;
    }
    const double gain =
        below * below / count + above * above / (all - count) - (below + above) * (below + above) / all;
    if (gain > best.gain) {
      best = {node, gain};
    }
    return true;
  }

  const std::vector<Features>& inputs_;
  const std::vector<double>& targets_;
  Random& random_;
  const ExtraTreesSettings& settings_;
  std::vector<std::size_t> rows_;  // a node's are next to each other
  std::vector<double> asked_;      // of a node's rows, for one split
  std::vector<Node> nodes_;
};

ExtraTrees::ExtraTrees(const std::vector<Features>& inputs, const std::vector<double>& targets,
                       Random& random, const ExtraTreesSettings& settings) {
  for (std::size_t tree = 0; tree < settings.trees; ++tree) {
    trees_.push_back(TreeGrower(inputs, targets, random, settings).grow());
  }
}

Estimate ExtraTrees::estimate(const Features& features) const {
  double sum = 0;
  double squares = 0;
  for (const std::vector<Node>& tree : trees_) {
    const Node* node = &tree.front();
    while (node->below != 0) {
      node = &tree[asked(*node, features) <= node->threshold ? node->below : node->above];
    }
    sum += node->value;
    squares += node->value * node->value;
  }
  const auto count = static_cast<double>(trees_.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace cubind
