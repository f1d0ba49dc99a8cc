// The records of a table, measured on the GPU of today.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/tune/stop_signals.hpp"
#include "tuner/table/table.hpp"

namespace cubind::ctl {

struct MeasuredRecord {
  std::string kernel;
  Problem problem;
  std::string device;  // label
  double recorded_us = 0;
  std::optional<double> now_us;         // absent: its job failed, and stderr says why
  std::optional<double> default_ratio;  // the default's time over it, in the same rounds

  /// Today's time over the recorded one.
  std::optional<double> ratio() const;
};

struct MeasuredTable {
  std::vector<MeasuredRecord> records;
  std::size_t left_out = 0;  // of device classes that no agent offers
};

/// Measures the configuration of each record with the kernel's default, in interleaved rounds. The results go
/// to a namespace of their own: no answer changes.
MeasuredTable measure_table(const Table& table, const CommonOptions& common, const StopSignals& interrupt);

/// Whether it is slower than the bound of `--fail`, or was not measured.
bool fails(const MeasuredRecord& record, const TableCheckOptions& options);

/// Whether a record fails, or every record was left out.
bool fails(const MeasuredTable& measured, const TableCheckOptions& options);

void print(const MeasuredTable& measured, const std::string& file, const TableCheckOptions& options);
OutputJson json_of(const MeasuredTable& measured, const TableCheckOptions& options);

}  // namespace cubind::ctl
