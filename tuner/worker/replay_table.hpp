// The recorded trials that a replay device plays.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/table/table.hpp"

namespace cubind::worker {

/// Immutable. Made from a table with trials of one device.
class ReplayTable {
 public:
  /// Throws Error(InvalidArgument) if the table holds no trial, or those of several devices.
  ReplayTable(Table table, const std::string& file);

  const Digest& digest() const { return digest_; }
  /// Those of the recorded device, with `replay_table` set: a class of its own.
  const DeviceFacts& facts() const { return facts_; }
  const std::string& driver() const { return driver_; }

  /// Null if nothing was recorded.
  const TableTrial* find(const std::string& kernel, const Problem& problem,
                         const Configuration& configuration) const;
  /// Throws Error(FailedPrecondition) if no configuration of the kernel was recorded on the problem; it lists
  /// the recorded problems.
  void require(const std::string& kernel, const Problem& problem) const;
  /// "scale N=4096,T=f32" for each problem with a trial, sorted; none where these are more than `most`.
  std::vector<std::string> recorded(std::size_t most) const;

  enum class Stage : std::uint8_t { Screening, Finals };
  /// Sample `k` of a trial, microseconds: a pure function of table, trial key, stage and k. The recorded
  /// samples come first, in order; from then on they repeat in an order drawn from the key. Zero if the
  /// trial has no samples.
  double sample(const TableTrial& trial, const Digest& trial_key, Stage stage, std::uint32_t k) const;

  /// The clocks at which a trial was recorded, and nothing else; 0: unknown.
  static Conditions clocks(const TableTrial& trial);

 private:
  std::string recordings_of(const std::string& kernel) const;

  std::string file_;
  Table table_;
  Digest digest_;
  DeviceFacts facts_;
  std::string driver_;
  std::map<std::string, const TableTrial*> trials_;
};

}  // namespace cubind::worker
