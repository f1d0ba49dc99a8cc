// Extremely randomized trees (Geurts, Ernst and Wehenkel, 2006): a mean and a spread for a configuration that
// was not tried, from those that were. Each split asks for one feature or for the sum of two; as features are
// logarithms, that is a product, such as the threads of a block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "tuner/search/estimate.hpp"

namespace cubind {

struct ExtraTreesSettings {
  std::size_t trees = 20;
  std::size_t splits = 8;  // tried for each node, at random thresholds
  double sums = 0.5;       // share of the splits that ask for a sum
};

/// Immutable: const methods may be called from several threads at once.
class ExtraTrees {
 public:
  using Features = std::vector<double>;

  /// `inputs` are of one length and not empty; a target for each.
  ExtraTrees(const std::vector<Features>& inputs, const std::vector<double>& targets, Random& random,
             const ExtraTreesSettings& settings = {});

  /// Mean and deviation over the trees.
  Estimate estimate(const Features& features) const;

 private:
  struct Node {
    double threshold = 0;
    double value = 0;         // of a leaf
    std::uint32_t first = 0;  // features: where they are the same one, it is taken once
    std::uint32_t second = 0;
    std::uint32_t below = 0;  // the node for sums up to the threshold; 0 for a leaf
    std::uint32_t above = 0;
  };
  friend class TreeGrower;

  static double asked(const Node& node, const Features& features) {
    return node.first == node.second ? features[node.first] : features[node.first] + features[node.second];
  }

  std::vector<std::vector<Node>> trees_;
};

}  // namespace cubind
