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

  /// The length scale, of those given, under which the targets are likeliest. `inputs` are of one length, a
  /// target for each; neither is empty.
  static double likeliest_scale(const std::vector<Features>& inputs, const std::vector<double>& targets,
                                const std::vector<double>& scales);

  GaussianProcess(std::vector<Features> inputs, const std::vector<double>& targets, double scale);

  Estimate estimate(const Features& features) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  double kernel(const Features& a, const Features& b) const;
  void factor();
  void solve(std::vector<double> standardized);

  std::vector<Features> inputs_;
  double scale_;
  double mean_ = 0, deviation_ = 1;  // of the targets
  std::vector<double> factor_;       // of the inputs' covariance: lower triangle, by rows
  std::vector<double> weights_;
  double log_likelihood_ = 0;
};

}  // namespace cubind
