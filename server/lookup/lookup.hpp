// Ranks the records that may answer a question, best first. Pure: the same question, snapshot and spec give
// the same candidates.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/answer.hpp"
#include "server/lookup/index.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The newest toolchain that agents offer for a question, which would compile now. Agents may have several
/// builds of it; an upgrade in place replaces a build and may keep the version.
struct CurrentToolchain {
  struct Build {
    Digest nvrtc, builtins;
    bool operator==(const Build&) const = default;
  };
  std::string name;           // "nvrtc 13.0"
  std::vector<Build> builds;  // empty if an agent does not report its build
};

/// Whether the version equals that of `current`.
bool is_version_of(const CurrentToolchain& current, const ToolchainIdentity& toolchain);
/// Whether version and libraries equal those of `current`. The toolkit's headers are not compared, because
/// only a compile tells which of them a source includes.
bool is_current(const CurrentToolchain& current, const ToolchainIdentity& toolchain);

/// A caller's question, canonical and checked.
struct Question {
  std::shared_ptr<const KernelSpec> spec;
  std::uint64_t spec_revision = 0;  // a different number for every spec ever loaded
  bool is_foreign = false;          // the kernel came from a user other than the daemon's
  Digest verification;              // the current verification digest for records with these numerics
  RecordQuestion key;               // kernel, interface, problem, device class, policy, numerics, namespace
  DeviceClass device;
  std::optional<DriverVersion> driver;        // absent: makes nothing stale
  DeviceFacts gpu;                            // the caller's, or the one that measures; unset: not known
  std::optional<CurrentToolchain> toolchain;  // absent: makes nothing stale
  /// Only records whose source is unchanged answer, with exactly the measured bytes. Validators are ignored,
  /// so that driver and toolchain do not change which record answers.
  bool is_locked = false;
  /// The first valid configuration, if none of the spec's defaults is valid and the space was searched, which
  /// may take long.
  std::optional<Configuration> fallback = {};
};

/// The architecture to compile a question's answer for.
std::string target_architecture(const Question& question);

/// A configuration that may answer, with the quality of that answer.
struct AnswerCandidate {
  Match match;
  Evidence evidence = Evidence::None;
  RecordPtr record;             // null: the default configuration
  Configuration configuration;  // of today's spec
};

/// A record's configuration in terms of the current spec, and whether the spec's change affects it.
struct CarriedOver {
  Configuration configuration;
  bool other_revision = false;
};

/// Absent if the current spec no longer has such a configuration. A tunable that the record lacks takes the
/// value of the first default, so that a new tunable does not invalidate tables.
std::optional<CarriedOver> carry_over(const KernelSpec& spec, const RecordRow& record,
                                      const DeviceFacts& measured_on);

/// carry_over() for the question's spec, possibly cached.
using CarryOver = std::function<std::optional<CarriedOver>(const RecordRow&, const DeviceFacts&)>;

/// The largest distance at which the nearest problem answers.
inline constexpr double kNearestLimit = 2.0;

/// The first of the spec's defaults that is valid for the asked problem, else the question's fallback; absent
/// if there is none, or the space was not searched.
std::optional<Configuration> valid_default(const Question& question);

/// Visits at most `limit` candidates with records, then valid_default() and the valid defaults after it.
/// Candidates that violate a constraint or launch limit for the asked problem are skipped.
///
/// A record of the problem itself has no departure; a record of its bucket has `bucket` (the largest measured
/// problem first), others within kNearestLimit have `nearest_problem`, and records of another device class
/// `other_device`. Validators add `stale`, a changed source adds `other_revision`.
///
/// Candidates are ordered by match, then by evidence (measured, provisional, imported, shipped), then for
/// buckets by the larger problem, else by the smaller distance. Results of a replay device never answer for a
/// real class, nor the other way round, and clients' reports never answer. Numerics `invariant:DIM` are
/// answered only by records that were compared with the current default: of the same bucket, device class,
/// revision and toolchain.
///
/// A locked question gets no default, and no record with `stale` or `other_revision`.
///
/// Calls `visit` for one candidate after another until it returns false, and ranks only as many as needed.
void visit_candidates(const Question& question, const IndexSnapshot& index, const CarryOver& carry,
                      const std::function<bool(AnswerCandidate&&)>& visit, std::size_t limit = 8);

/// All of visit_candidates().
std::vector<AnswerCandidate> rank_candidates(const Question& question, const IndexSnapshot& index,
                                             const CarryOver& carry, std::size_t limit = 8);

/// The conditions under which the record answers problems of the question's bucket that have no record of
/// their own: its constraints and these expressions. Each expression holds where the configuration of a
/// preferred record is invalid. Absent if other problems of the bucket may have another answer.
std::optional<std::vector<std::string>> bucket_conditions(const Question& question,
                                                          const IndexSnapshot& index, const CarryOver& carry,
                                                          const RecordRow& record);

/// Whether the dims lie within the bucket's intervals.
bool in_bucket(const std::vector<BucketRule::Interval>& bucket, Dims dims);

/// Whether the GPU has the power limit that the measurement was made under; absent: one side does not tell.
std::optional<bool> has_same_limit(const Timing& measured, const DeviceFacts& gpu);

/// Whether a validator of the record (driver branch, toolchain, power limit, flush method) differs from the
/// question's. A fact that one side does not know makes no record stale; power limits are compared only on
/// the same device class. Toolchains are compared by their libraries if the record was measured here, by
/// their version if it came with a table: another machine's build of the same version is not an upgrade.
bool is_stale(const Question& question, const RecordRow& record, bool same_device);

/// The validator that makes the record stale, old and new: "nvrtc 13.0, now nvrtc 13.5". Empty if it is not
/// stale.
std::string stale_because(const Question& question, const RecordRow& record, bool same_device);

/// Whether an agent of this daemon measured or replayed the record; all others came with tables.
bool was_measured_here(const RecordRow& record);

/// Whether the candidate was measured here (or replayed, for a replay device), alone on the GPU, with the
/// current source and validators. Then there is nothing to tune.
bool is_fresh(const Question& question, const AnswerCandidate& candidate);

/// The newest current record of the question's problem on its device class that a worker of this daemon
/// measured (or replayed), under any driver, toolchain and flush method; null if there is none.
RecordPtr latest_measurement(const RecordQuestion& question, const IndexSnapshot& index);

}  // namespace cubind
