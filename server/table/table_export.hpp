// From the store to a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/store/store.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

struct ExportOptions {
  std::vector<std::string> kernels;    // empty: all
  std::optional<Digest> device_class;  // absent: all
  std::optional<std::string> name_space;
  bool all_trials = false;
  bool samples = false;  // with all_trials: each sample, for a replay device
  bool replayed = false;
  bool provisional = false;
  bool shipped = false;
};

struct ExportedTable {
  Table table;
  /// Records, and with all_trials trials, that lack `replayed`, `provisional` or `shipped` alone.
  std::uint32_t replayed_left_out = 0, provisional_left_out = 0, shipped_left_out = 0;
  /// Those whose device class is damaged in the store, which a table could not describe.
  std::uint32_t damaged_left_out = 0;
};

/// The current records, and the trials of their questions. If a question has a measured record and one of a
/// table for the same driver branch and toolchain major version, the measured one is exported.
ExportedTable export_table(StoreReader& store, const ExportOptions& options);

}  // namespace cubind
