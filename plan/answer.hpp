// The quality of an answer: its departures from the question, its evidence, and the outcome of a trial.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// One way in which an answer departs from the question, mildest first: the order ranks candidates.
enum class Departure : std::uint8_t {
  Bucket,         // measured on the bucket's representative or largest measured problem, not on the asked one
  Stale,          // measured under another driver branch, toolchain, power limit or flush method
  OtherRevision,  // the source has changed since: the configuration is compiled from the new source
  NearestProblem,  // measured on the nearest problem with the same types and flags, outside the bucket
  OtherDevice,     // measured on another device class
  Default = 6,     // the spec's default configuration, or the first valid one
};

/// The evidence of an answer, weakest first. Only Measured is ever called a measurement.
enum class Evidence : std::uint8_t {
  None = 0,      // nothing: a default configuration
  Shipped = 1,   // came with cubind's tables: like Imported, but not from this site
  Replayed = 2,  // the replay device played it back: never answers for a real device class
  Imported = 3,  // came with a table: never replaces a measurement, never becomes an incumbent
  Measured = 5,  // measured by one of this store's device workers
};

/// How a trial ended. A tuning failure is data, not an exception.
enum class Outcome : std::uint8_t {
  Correct,      // it ran and every element of every output was within tolerance
  Constraint,   // a constraint or launch limit excludes it for the problem
  Compile,      // NVRTC refused it, ran out of time or of memory, or crashed
  Launch,       // it was compiled, but the driver refused to launch it
  Runtime,      // it faulted: illegal or misaligned address, trap
  Timeout,      // it did not end in time
  WrongResult,  // it ran and an element was out of tolerance, or a red zone was written
  OutOfMemory,  // the device had too little free memory then: not stored as a property of the configuration
  Unverified,   // its first sample was too slow to win, so its results were not checked
};

/// Whether it failed at its launch or while it ran, which may not repeat.
inline bool is_fault(Outcome outcome) {
  return outcome == Outcome::Launch || outcome == Outcome::Runtime || outcome == Outcome::Timeout;
}

/// "bucket", "stale", "other_revision", "nearest_problem", "other_device", "default".
std::string_view to_string(Departure departure);
/// "none", "shipped", "replayed", "imported", "measured".
std::string_view to_string(Evidence evidence);
/// "correct", "constraint", "compile", "launch", "runtime", "timeout", "wrong_result", "out_of_memory",
/// "unverified".
std::string_view to_string(Outcome outcome);

/// The inverse of to_string; absent for an unknown word.
std::optional<Departure> parse_departure(std::string_view name);
std::optional<Evidence> parse_evidence(std::string_view name);
std::optional<Outcome> parse_outcome(std::string_view name);

/// A set of departures; the empty set is exact. `a < b` if a is the better match: its worst member is milder,
/// or the worst members are equal and a has fewer members. If both are equal, the next worst member decides,
/// so that the order is total.
class Match {
 public:
  Match() = default;
  Match(std::initializer_list<Departure> departures);

  Match& add(Departure departure);
  bool has(Departure departure) const;
  bool exact() const { return bits_ == 0; }
  std::size_t count() const;
  /// Mildest first.
  std::vector<Departure> departures() const;
  /// Whether the caller accepts each departure.
  bool within(const Match& accepted) const { return (bits_ & ~accepted.bits_) == 0; }

  bool operator==(const Match&) const = default;
  std::strong_ordering operator<=>(const Match& other) const;

 private:
  std::uint8_t bits_ = 0;
};

/// Every departure, which is what a caller accepts by default.
Match all_departures();

/// "exact", or the members, mildest first: "bucket+stale".
std::string to_string(const Match& match);
/// The inverse of to_string; absent for an unknown member.
std::optional<Match> parse_match(std::string_view text);

}  // namespace cubind
