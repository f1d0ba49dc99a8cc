#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/agent/tuning/trial_device.hpp"

namespace cubind {

/// Throws FailedPrecondition where they are asked of a replay device: its tables say nothing about rows.
bool wants_row_invariance(const JobInput& input);

/// Numerics `invariant:DIM`: an output's rows have the same bits for every size of DIM.
///
/// Each problem's default configuration is the measure. A configuration passes at a problem if all rows have
/// the bits that the default gives them. The default must pass as well: its first rows have the bits that it
/// gives at smaller sizes of DIM (the smallest, one from 7, half of the problem's). So winners of different
/// sizes agree with each other, and with the default, which answers before anything is measured.
///
/// The verdict is not stored, because another toolchain may give the default other bits; a resumed job
/// compares again. Used from the job's thread.
class RowInvariance {
 public:
  RowInvariance(const JobInput& input, const KernelBuild& build, CompileSource& artifacts,
                TrialDevice& device);

  /// All rows of the problem: holds() compares their hash.
  const v1::OutputParts& rows_at(const Problem& problem);
  /// Whether a correct trial's rows, in the reply's only hash, are the default's. Runs the default for it
  /// where that was not done. Throws Error(FailedPrecondition) where the default has no such rows or fails.
  bool holds(const DeviceSetup& setup, bool after_timing, const v1::DeviceReply& reply);

 private:
  /// The default configuration at one problem.
  struct Yardstick {
    Candidate candidate;
    v1::OutputParts rows;
    std::map<bool, std::uint64_t> hashes;  // by whether it was after timing
  };
  [[noreturn]] void fail(const std::string& cause) const;
  Yardstick& yardstick(const Problem& problem);
  std::vector<Problem> smaller_problems(const Problem& problem);
  /// Compares rows of the default: at a problem whose smaller problems must agree with it, and at one of
  /// those.
  std::uint64_t hash_at(const DeviceSetup& at, bool after_timing);
  std::uint64_t hash_of(const Problem& smaller, bool after_timing);
  v1::DeviceReply run(const Yardstick& yardstick, const DeviceSetup& setup, bool after_timing,
                      const std::vector<v1::OutputParts>& hashed);

  const JobInput& input_;
  const KernelBuild& build_;
  CompileSource& artifacts_;
  TrialDevice& device_;
  std::size_t dim_ = 0;  // its setup in the problem
  std::uint32_t next_number_;
  std::map<std::string, Yardstick> yardsticks_;  // by problem
};

}  // namespace cubind
