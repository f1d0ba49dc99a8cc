// A Gaussian process (Rasmussen and Williams, 2006): a smooth surface through what was tried, and how far it
// can be trusted elsewhere.
#pragma once

#include <vector>

#include "tuner/search/additive_kernel.hpp"
#include "tuner/search/estimate.hpp"

namespace cubind {

/// const methods may be called from several threads at once.
class GaussianProcess {
 public:
  /// Of some lengths and orders those by which the targets are likeliest. `inputs`: a target for each;
  /// neither is empty, nor is `lines`. Costs thirty processes.
  static AdditiveKernel likeliest_kernel(const std::vector<Coordinates::Line>& lines,
                                         const std::vector<Point>& inputs,
                                         const std::vector<double>& targets);

  GaussianProcess(const std::vector<Point>& inputs, const std::vector<double>& targets,
                  AdditiveKernel kernel);

  /// What is tried now and has no target yet: less is unknown around it, and all means stay.
  void expect(const Point& input);

  Estimate estimate(const Point& point) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  std::vector<double> shared(const Point& point) const;
  void reduce(std::vector<double>& shared) const;
  void solve(std::vector<double> standardized);

  AdditiveKernel kernel_;
  double mean_ = 0, deviation_ = 1;  // of the targets
  std::vector<Point> inputs_;
  std::vector<std::vector<double>> factor_;  // Cholesky's of the inputs' covariance: rows up to the diagonal
  std::vector<double> weights_;              // of the inputs that have targets
  double log_likelihood_ = 0;
};

}  // namespace cubind
