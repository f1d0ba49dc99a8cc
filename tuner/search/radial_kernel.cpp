#include "tuner/search/radial_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/search/gaussian_process.hpp"

namespace cubind {
namespace {

constexpr double kScales[] = {0.3, 0.5, 0.8, 1.2, 2, 3};  // lengths that the search for weights begins with
constexpr double kLeastWeight = 1.0 / 32;
constexpr double kMostWeight = 16;
constexpr int kPasses = 2;         // over all coordinates
constexpr double kSurprise = 0.1;  // of a weight of 2 or 1/2; it grows with the logarithm's square

// Weights that are changed where that makes the targets likelier.
class WeightSearch {
 public:
  using Input = RadialKernel::Input;

  WeightSearch(const std::vector<Input>& inputs, const std::vector<double>& targets)
      : inputs_(inputs), targets_(targets), weights_(inputs.front().size(), 1) {}

  std::vector<double> run() && {
    for (const double scale : kScales) {
      offer(std::vector<double>(inputs_.front().size(), 1 / scale));
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      for (std::size_t axis = 0; axis < weights_.size(); ++axis) {
        if (!offer_times(axis, 2)) {
          offer_times(axis, 0.5);
        }
      }
    }
    return std::move(weights_);
  }

 private:
  bool offer_times(std::size_t axis, double factor) {
    std::vector<double> weights = weights_;
    weights[axis] = std::clamp(weights[axis] * factor, kLeastWeight, kMostWeight);
    return weights[axis] != weights_[axis] && offer(std::move(weights));
  }

  bool offer(std::vector<double> weights) {
    double likelihood = GaussianProcess(inputs_, targets_, RadialKernel(weights)).log_likelihood();
    for (const double weight : weights) {
      likelihood -= kSurprise * std::log2(weight) * std::log2(weight);
    }
    if (likelihood <= most_) {
      return false;
    }
    most_ = likelihood;
    weights_ = std::move(weights);
    return true;
  }

  const std::vector<Input>& inputs_;
  const std::vector<double>& targets_;
  std::vector<double> weights_;
  double most_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

RadialKernel RadialKernel::likeliest(const Coordinates&, const std::vector<Input>& inputs,
                                     const std::vector<double>& targets) {
  return RadialKernel(WeightSearch(inputs, targets).run());
}

RadialKernel::RadialKernel(std::vector<double> weights) : weights_(std::move(weights)) {}

RadialKernel::Input RadialKernel::place(Input input) const {
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] *= weights_[i];
  }
  return input;
}

double RadialKernel::operator()(const Input& one, const Input& other) const {
  double squares = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    squares += (one[i] - other[i]) * (one[i] - other[i]);
  }
  const double distance = std::sqrt(5 * squares);
  return (1 + distance + distance * distance / 3) * std::exp(-distance);
}

}  // namespace cubind
