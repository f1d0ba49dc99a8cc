// A Gaussian process with a Matern 5/2 kernel (Rasmussen and Williams, 2006): a smooth surface through what
// was tried, and how far it can be trusted elsewhere.
#pragma once

#include <vector>

#include "tuner/search/estimate.hpp"

namespace cubind {

/// Immutable: const methods may be called from several threads at once.
class GaussianProcess {
 public:
  using Features = std::vector<double>;

  /// What each coordinate is to be multiplied by so that the targets are likeliest, where weights of 1 are
  /// likelier beforehand and each step to the double or the half less so: one tunable is decisive, another
  /// has no effect. `inputs` are of one length, a target for each; neither is empty. Costs some forty
  /// processes.
  static std::vector<double> likeliest_weights(const std::vector<Features>& inputs,
                                               const std::vector<double>& targets);

  GaussianProcess(std::vector<Features> inputs, const std::vector<double>& targets,
                  std::vector<double> weights);

  Estimate estimate(const Features& features) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  Features weighted(Features features) const;
  void factor();
  void solve(std::vector<double> standardized);

  std::vector<double> weights_of_axes_;
  std::vector<Features> inputs_;     // weighted
  double mean_ = 0, deviation_ = 1;  // of the targets
  std::vector<double> factor_;       // of the inputs' covariance: lower triangle, by rows
  std::vector<double> weights_;
  double log_likelihood_ = 0;
};

}  // namespace cubind
