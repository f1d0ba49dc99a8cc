// A Gaussian process (Rasmussen and Williams, 2006): a surface through what was tried, and how far it can be
// trusted elsewhere. What kind of surface, its kernel says.
#pragma once

#include <vector>

#include "tuner/search/additive_kernel.hpp"
#include "tuner/search/estimate.hpp"

namespace cubind {

/// Const methods may be called from several threads at once.
class GaussianProcess {
 public:
  /// A target for each input; neither is empty.
  GaussianProcess(const std::vector<Point>& inputs, const std::vector<double>& targets,
                  AdditiveKernel kernel);

  /// What is tried now and has no target yet: less is unknown around it, and all means stay.
  void expect(const Point& input);

  Estimate estimate(const Point& input) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  std::vector<double> shared(const Point& input) const;
  void reduce(std::vector<double>& shared) const;
  void solve(std::vector<double> standardized);

  AdditiveKernel kernel_;
  std::vector<Point> inputs_;
  double mean_ = 0, deviation_ = 1;          // of the targets
  std::vector<std::vector<double>> factor_;  // Cholesky's of the inputs' covariance: rows up to the diagonal
  std::vector<double> weights_;              // of the inputs that have targets
  double log_likelihood_ = 0;
};

}  // namespace cubind
