// A Gaussian process with a Matern 5/2 kernel (Rasmussen and Williams, 2006): a smooth surface through what
// was tried, and how far it can be trusted elsewhere.
#pragma once

#include <vector>

#include "tuner/search/estimate.hpp"

namespace cubind {

/// Const methods may be called from several threads at once.
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

  /// What is tried now and has no target yet: less is unknown around it, and all means stay.
  void expect(Features features);

  Estimate estimate(const Features& features) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  Features weighted(Features features) const;
  std::vector<double> shared(const Features& place) const;
  void reduce(std::vector<double>& shared) const;
  void solve(std::vector<double> standardized);

  std::vector<double> weights_of_axes_;
  std::vector<Features> inputs_;             // weighted
  double mean_ = 0, deviation_ = 1;          // of the targets
  std::vector<std::vector<double>> factor_;  // Cholesky's of the inputs' covariance: rows up to the diagonal
  std::vector<double> weights_;              // of the inputs that have targets
  double log_likelihood_ = 0;
};

}  // namespace cubind
