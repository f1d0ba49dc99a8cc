// From the store to a table.
#pragma once

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
  bool samples = false;  // with all_trials: each sample, which is what a replay device needs
  bool replayed = false;
  bool provisional = false;
};

/// The current records, and the trials behind them and beside them. Of a measured and an imported record of
/// the same question, driver branch and toolchain major version the measured one is exported.
Table export_table(StoreReader& store, const ExportOptions& options);

}  // namespace cubind
