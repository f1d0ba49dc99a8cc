// The parts of a measurement: samples and the conditions under which they were taken, verifications, and the
// summaries of both that a record keeps of its winner. Store, tables, agent and messages hold these; each
// fact is declared here alone, with its name in JSON. evidence_wire.hpp makes messages of them,
// evidence_json.hpp JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/digest.hpp"
#include "tuner/plan/answer.hpp"
#include "tuner/plan/problem.hpp"

namespace cubind {

/// IfSet: a false or zero member is left out.
enum class Printed : std::uint8_t { Always, IfSet };

/// A member by its name in JSON.
template <typename Owner, typename Value>
struct JsonField {
  std::string_view name;
  Value Owner::*member;
  Printed printed = Printed::Always;
};
template <typename Owner, typename Value>
JsonField(std::string_view, Value Owner::*, Printed = Printed::Always) -> JsonField<Owner, Value>;

/// The resources that a compiled entry takes of an SM.
struct EntryResources {
  std::string entry_symbol;
  std::uint32_t registers = 0, static_shared_bytes = 0, local_bytes = 0, spill_store_bytes = 0,
                spill_load_bytes = 0;
  bool tensor_cores = false;
  std::uint32_t launch_shared_bytes = 0;  // dynamic, decided by the compiler, beyond the plan's
  bool operator==(const EntryResources&) const = default;
};

inline constexpr std::tuple kResourceFields{
    JsonField{"entry_symbol", &EntryResources::entry_symbol},
    JsonField{"registers", &EntryResources::registers},
    JsonField{"static_shared_bytes", &EntryResources::static_shared_bytes},
    JsonField{"local_bytes", &EntryResources::local_bytes},
    JsonField{"spill_store_bytes", &EntryResources::spill_store_bytes},
    JsonField{"spill_load_bytes", &EntryResources::spill_load_bytes},
    JsonField{"tensor_cores", &EntryResources::tensor_cores},
    JsonField{"launch_shared_bytes", &EntryResources::launch_shared_bytes, Printed::IfSet},
};

/// The GPU's state while a block of samples was taken; zero if NVML does not tell.
struct BlockConditions {
  std::uint32_t sm_mhz = 0, memory_mhz = 0, temperature_c = 0, power_mw = 0;
  std::uint64_t throttle_reasons = 0;  // NVML's bits
  bool throttled = false;              // thermal or hardware slowdown, kept after three dropped blocks
  bool contended = false;              // a foreign process was on the GPU
  bool operator==(const BlockConditions&) const = default;
};

/// A block's conditions as a table has them.
inline constexpr std::tuple kConditionFields{
    JsonField{"sm_mhz", &BlockConditions::sm_mhz},
    JsonField{"memory_mhz", &BlockConditions::memory_mhz, Printed::IfSet},
    JsonField{"throttled", &BlockConditions::throttled, Printed::IfSet},
    JsonField{"contended", &BlockConditions::contended, Printed::IfSet},
};

/// Samples of one trial that were taken one after the other.
struct SampleBlock {
  std::vector<double> samples_us;
  BlockConditions conditions;
  double judged_against_us = 0;  // screening: the best at that time; 0: none
  bool operator==(const SampleBlock&) const = default;
};

/// One comparison of a trial's outputs with the reference.
struct VerificationResult {
  Problem problem;
  bool after_timing = false;
  Outcome outcome = Outcome::Correct;
  double worst_excess = 0;  // max of |out - ref| / (atol + rtol |ref|)
  bool same_bits = false;   // two runs gave the same bits
  std::string worst_output = {};
  std::uint64_t worst_index = 0;
  std::uint64_t mismatches = 0;
  std::string detail = {};
  std::string reference = {};  // "kernel", "default"
  bool operator==(const VerificationResult&) const = default;
};

/// How fast a winner is, and how that was measured.
struct Timing {
  double median_us = 0, low_us = 0, high_us = 0;  // and its 95 % bootstrap interval
  std::uint32_t samples = 0;
  std::uint32_t sm_mhz = 0;          // median of the samples' blocks; 0: unknown
  std::uint32_t power_limit_mw = 0;  // 0: unknown
  bool throttled = false, contended = false;
  double gain_over_default = 0;  // time of the default over time of the winner; 0: unknown
  std::string timer;             // "cupti", "graph", "replay"
  double tick_us = 0;
  std::string measured_at;  // RFC 3339, UTC
  bool operator==(const Timing&) const = default;
};

/// The part of a timing that prints alike everywhere. A member that is newer than the tables which people
/// keep is printed IfSet: theirs then print as they did.
inline constexpr std::tuple kTimingFields{
    JsonField{"time_us", &Timing::median_us},    JsonField{"time_low_us", &Timing::low_us},
    JsonField{"time_high_us", &Timing::high_us}, JsonField{"samples", &Timing::samples},
    JsonField{"sm_mhz", &Timing::sm_mhz},        JsonField{"power_limit_mw", &Timing::power_limit_mw},
    JsonField{"throttled", &Timing::throttled},  JsonField{"contended", &Timing::contended},
};

/// A winner against the function of a library that one would call instead. A client measures both in its own
/// process and reports it: the daemon serves what it serves without it.
struct LibraryComparison {
  std::string library;                 // "torch 2.13.0+cu130"
  double gain = 0, low = 0, high = 0;  // time of the library over time of the winner, and its 95 % interval
  std::uint32_t samples = 0;           // rounds with one sample of each
  bool operator==(const LibraryComparison&) const = default;
};

inline constexpr std::tuple kComparisonFields{
    JsonField{"library", &LibraryComparison::library}, JsonField{"gain", &LibraryComparison::gain},
    JsonField{"gain_low", &LibraryComparison::low},    JsonField{"gain_high", &LibraryComparison::high},
    JsonField{"samples", &LibraryComparison::samples},
};

/// The verification of a winner: its reference and its problems (its own and the tails).
struct VerificationSummary {
  bool verified = false;
  Digest digest;          // of reference and tolerance
  std::string reference;  // "kernel", "default"
  double worst_excess = 0;
  bool same_bits = false;
  bool after_timing = false;
  std::vector<Problem> problems;
  bool operator==(const VerificationSummary&) const = default;
};

}  // namespace cubind
