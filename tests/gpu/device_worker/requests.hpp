// Requests in few words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"

namespace cubind::test {

struct BufferOptions {
  std::string fill = "normal";
  std::vector<double> parameters{};
  std::string content{};  // of a "file" fill
  std::uint32_t align = 16;
  bool timed_zero = false;
  bool constant = false;                   // an output that does not depend on the inputs
  bool partial = false;                    // an output of which elements may be left alone
  std::vector<std::uint64_t> summed = {};  // its shape, if its sums along one axis may be compared
  double rtol = 1e-5;
  double atol = 1e-6;
};

/// A problem, and plans over its buffers. Setup 1.
class Requests {
 public:
  Requests& buffer(const std::string& name, const std::string& type, v1::Role role, std::uint64_t elements,
                   const BufferOptions& options = {});
  /// The reference: a kernel of kernels.cu.
  Requests& reference(const v1::Launch& launch);
  Requests& expected(const std::string& name, const std::string& type, const std::string& bytes);
  v1::PrepareProblem& problem() { return prepare_; }

  /// A kernel over buffers, named as they are, then whole numbers (i64).
  v1::Launch launch(const std::string& kernel, std::uint32_t grid, v1::Dim3 block,
                    const std::vector<std::string>& buffers, const std::vector<std::int64_t>& numbers) const;
  static v1::Dim3 dim(std::uint32_t x, std::uint32_t y = 1);
  static v1::LaunchPlan plan(const std::vector<v1::Launch>& launches);

  v1::DeviceRequest prepare() const;
  /// Loads kernels.cu as trial 1, with the symbols of the plan.
  static v1::DeviceRequest load(const v1::LaunchPlan& plan, std::uint32_t trial = 1);
  static v1::DeviceRequest verify(const v1::LaunchPlan& plan, std::uint64_t seed = 1,
                                  bool check_same_bits = true);
  static v1::DeviceRequest measure(const v1::LaunchPlan& plan, std::uint32_t samples, bool warm_up = true);
  static v1::DeviceRequest release();
  static v1::DeviceRequest probe();

 private:
  v1::PrepareProblem prepare_;
};

/// 33 rows of 64 floats, four rows a block: the last block has one row to do. As kernels.cu has it.
inline constexpr std::int64_t kRows = 33;
inline constexpr std::int64_t kColumns = 64;
Requests row_problem(const BufferOptions& x_options = {}, const BufferOptions& w_options = {});
v1::LaunchPlan row_plan(const Requests& problem, const std::string& kernel);

double median(const v1::MeasuredItem& item);

}  // namespace cubind::test
