// Checks whether a table can be read and still holds for today's kernel specs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/spec/spec_folder.hpp"

namespace cubind {

struct TableFinding {
  std::string where;  // "t.json /records/3/configuration/VECTOR"
  std::string cause;
  /// The row still answers, as `other_revision` or without being called verified: the kernel's source, its
  /// reference or its tolerance has changed since it was measured.
  bool outdated = false;
};

struct TableCheck {
  std::size_t records = 0, trials = 0;  // that could be read
  std::vector<TableFinding> findings;
};

/// Faults in the order of the file. First what makes it no table (then it looks no further) and the first
/// fault of each element that is unreadable. Then, for each other record and trial:
///  - the kernel: known, with the interface of today (one finding per kernel, with a count);
///  - the problem: canonical for the kernel's spec;
///  - the configuration: values that the spec lists; the constraints and launch limits hold on the measured
///    device (but for trials that ended as `constraint`);
///  - the trial key: what it would be today (outdated);
///  - of records: evidence that fits the device, a cubin that runs there, today's verification (outdated),
///    and a trial in the table that was correct.
/// It needs no daemon, no GPU and no toolchain.
TableCheck check_table(std::string_view text, const std::string& file, const KnownSpecs& known);

/// What is wrong with that many records of a kernel whose interface is not today's.
std::string other_interface(std::size_t records, const std::string& kernel, const std::string& spec_file);

}  // namespace cubind
