// A tuning table: export writes it, import reads it, the replay device plays it, and teams keep it in version
// control.
//
// JSON, described in docs/tables.md. Canonical: devices, records and trials sorted by their keys,
// each on a line of its own, no date and no host of the export, so that an unchanged table prints the same
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/interrupt.hpp"
#include "plan/facts/facts.hpp"
#include "plan/problem.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

struct TableDevice {
  Digest device_class;
  std::string label;
  DeviceFacts facts;
  bool operator==(const TableDevice&) const = default;
};

/// The measurement that records and trials share: its kernel, problem, device and conditions.
struct TableContext {
  std::string kernel;
  Problem problem;
  Digest device_class;
  std::string policy;  // "cold/3,stream"
  Configuration configuration;
  Digest trial;  // trial key
  std::string driver;
  std::string architecture;
  Digest artifact;  // of the measured cubin; zero: none was made
  ToolchainIdentity toolchain;
  bool operator==(const TableContext&) const = default;
};

/// The winner for one question, with its evidence.
struct TableRecord {
  TableContext context;
  Digest interface;
  std::string numerics;
  std::string name_space;
  Evidence evidence = Evidence::Measured;
  bool provisional = false;
  std::uint32_t driver_cuda = 0;
  Timing timing;
  VerificationSummary verification;
  std::vector<LibraryComparison> over_library;  // the latest last
  bool operator==(const TableRecord&) const = default;
};

/// A trial. Of conditions and verifications a table tells the part that says how far to trust them.
struct TableTrial {
  TableContext context;
  std::string timer;
  double tick_us = 0;
  /// For readers, instead of the samples: of a winner its record's time, else the median of the finals'
  /// samples, else of the screening's, and how many these were. An import does not keep it. 0: the table has
  /// the samples, or there were none.
  double time_us = 0;
  std::uint32_t samples = 0;
  Outcome outcome = Outcome::Correct;
  v1::TrialHeader header;             // its detail, and what follows kFirstTrialFact
  std::optional<Digest> measured_as;  // the trial that was measured for it: its samples are that one's
  std::vector<EntryResources> resources;
  std::vector<SampleBlock> screening, finals;  // by block index
  std::vector<VerificationResult> verifications;
  bool operator==(const TableTrial&) const = default;
};

/// A table with its rows in the order of the file.
struct Table {
  std::vector<TableDevice> devices;
  std::vector<TableRecord> records;
  std::vector<TableTrial> trials;
  bool operator==(const Table&) const = default;
};

/// The limit of its text. Everything that reads or writes tables keeps to it, so that every export can be
/// imported.
inline constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20;

/// Reads a table. Refuses members that it does not know, and what breaks a rule: names of at most 256 bytes
/// without control characters, dims from 0 to 2^48, no two records or trials with the same key,
/// every device class listed, low <= median <= high. Throws Error(InvalidArgument) at "FILE /json/pointer",
/// and ResourceExhausted above kMaxTableBytes.
Table read_table(std::string_view text, const std::string& file, const Interrupt& interrupt = {});

/// Puts everything in its printed order: by keys, sizes by value.
void sort_table(Table& table);

/// The order of sort_table() among records.
bool prints_before(const TableRecord& a, const TableRecord& b);

/// Its printed line.
std::string canonical_bytes(const TableDevice& device);
std::string canonical_bytes(const TableRecord& record);
std::string canonical_bytes(const TableTrial& trial);

/// Canonical text, ending in a newline. Sorts.
std::string print_table(Table table);

/// SHA-256 of the canonical text: the name of a replayed table.
Digest table_digest(const Table& table);

}  // namespace cubind
