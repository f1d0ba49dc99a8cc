// A tuning table: what export writes, import reads, the replay device plays and teams keep in version
// control.
//
// JSON, described by schemas/table.schema.json. Canonical: devices, records and trials sorted by their keys,
// each on a line of its own, no date and no host of the export, so that an unchanged table prints the same
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/interrupt.hpp"
#include "tuner/plan/answer.hpp"
#include "tuner/plan/problem.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

struct TableDevice {
  Digest device_class;
  std::string label;
  DeviceFacts facts;
  bool operator==(const TableDevice&) const = default;
};

/// What a winner was verified against, and on which problems (its own and the tails).
struct TableVerification {
  bool verified = false;
  Digest digest;          // of reference and tolerance
  std::string reference;  // "kernel", "expected", "default"
  double worst_excess = 0;
  bool same_bits = false;
  bool after_timing = false;
  std::vector<Problem> problems;
  bool operator==(const TableVerification&) const = default;
};

/// The conditions under which a trial was measured, shared by records and trials.
struct TableContext {
  std::string kernel;
  Problem problem;
  Digest device_class;
  std::string policy;  // "cold/1,stream"
  Configuration configuration;
  Digest trial;  // trial key
  std::string driver;
  std::string architecture;
  Digest artifact;  // of the measured cubin; zero: none was made
  ToolchainIdentity toolchain;
  std::string timer;
  double tick_us = 0;
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
  double time_us = 0, time_low_us = 0, time_high_us = 0;  // median, 95 % bootstrap interval
  std::uint32_t samples = 0;
  std::uint32_t sm_mhz = 0, power_limit_mw = 0;
  bool throttled = false, contended = false;
  double gain_over_default = 0;
  std::uint32_t driver_cuda = 0;
  std::string measured_at;  // RFC 3339, UTC
  TableVerification verification;
  bool operator==(const TableRecord&) const = default;
};

struct TableBlock {
  std::vector<double> samples_us;
  std::uint32_t sm_mhz = 0;
  bool throttled = false, contended = false;
  double judged_against_us = 0;  // screening: the best at that time; 0: none
  bool operator==(const TableBlock&) const = default;
};

struct TableResources {
  std::string entry_symbol;
  std::uint32_t registers = 0, static_shared_bytes = 0, local_bytes = 0, spill_store_bytes = 0,
                spill_load_bytes = 0;
  bool tensor_cores = false;
  bool operator==(const TableResources&) const = default;
};

struct TableTrialVerification {
  Problem problem;
  bool after_timing = false;
  Outcome outcome = Outcome::Correct;
  double worst_excess = 0;
  bool same_bits = false;
  bool operator==(const TableTrialVerification&) const = default;
};

struct TableTrial {
  TableContext context;
  Outcome outcome = Outcome::Correct;
  std::string detail;
  std::vector<TableResources> resources;
  std::vector<TableBlock> screening, finals;  // by block index
  std::vector<TableTrialVerification> verifications;
  bool operator==(const TableTrial&) const = default;
};

struct Table {
  std::vector<TableDevice> devices;
  std::vector<TableRecord> records;
  std::vector<TableTrial> trials;
  bool operator==(const Table&) const = default;
};

/// Of its text. Whoever takes or gives tables keeps to it, so that what was exported can be imported.
inline constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20;

/// Reads a table and checks it against the schema, then what a schema cannot say: names of at most 256 bytes
/// without control characters, dims from 0 to 2^48, no two records or trials with the same key, every device
/// class listed, low <= median <= high. Throws Error(InvalidArgument) at "FILE /json/pointer", and
/// ResourceExhausted above kMaxTableBytes.
Table read_table(std::string_view text, const std::string& file, const Interrupt& interrupt = {});

/// Puts everything in the order in which it prints: that of the keys, sizes by value.
void sort_table(Table& table);

/// The order of sort_table() among records.
bool prints_before(const TableRecord& a, const TableRecord& b);

/// The line that it prints as.
std::string canonical_bytes(const TableDevice& device);
std::string canonical_bytes(const TableRecord& record);
std::string canonical_bytes(const TableTrial& trial);

/// Canonical text, ending in a newline. Sorts.
std::string print_table(Table table);

/// SHA-256 of the canonical text: the name of a replayed table.
Digest table_digest(const Table& table);

}  // namespace cubind
